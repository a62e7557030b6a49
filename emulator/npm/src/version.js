// Versions: this package's own, and what it says of a server whose version is another.

/** This package's version, which is also the Python package's. */
export const VERSION = "0.1.0";

const HEALTH = "/__emulator__/health";
const PATIENCE_MS = 2000;

/** Two versions fit where their first two numbers are the same. */
export function fits(version) {
  const line = (text) => text.split(".").slice(0, 2).join(".");
  return line(version) === line(VERSION);
}

/**
 * What is wrong with the server at this root, in one line; null where nothing is.
 *
 * The version is read from `health`, or from the Server header where the control plane is closed to us.
 */
export async function misfit(url, fetcher = fetch) {
  let reply;
  try {
    reply = await fetcher(`${url}${HEALTH}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch (fault) {
    const why = fault.cause?.code ?? fault.cause?.message ?? fault.message;
    return `workersai-emulator: nothing answers at ${url} (${why}); start it with: workersai-emulator serve`;
  }
  const named = reply.headers.get("server") ?? "";
  const told = await reply.json().catch(() => null);
  const version = told?.version ?? /^workersai-emulator\/(\S+)/.exec(named)?.[1];
  if (version === undefined) {
    return `workersai-emulator: what answers at ${url} is no workersai-emulator`;
  }
  if (!fits(version)) {
    return (
      `workersai-emulator: the server at ${url} is ${version} and the npm package ${VERSION}; ` +
      `install the same version of both`
    );
  }
  return null;
}
