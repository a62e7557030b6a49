// Where the emulator is.

const DEFAULT_URL = "http://127.0.0.1:8799";
const VARIABLE = "WORKERS_AI_EMULATOR_URL";

/**
 * The server's root without a slash at its end: the environment's WORKERS_AI_EMULATOR_URL, which `exec` sets, goes
 * before what a configuration says. Throws a TypeError for what is no root of an HTTP server.
 */
export function rootFrom(configured) {
  return rootOf(globalThis.process?.env?.[VARIABLE] || configured || DEFAULT_URL);
}

/** The same root without a slash at its end. Throws a TypeError for what is no root of an HTTP server. */
export function rootOf(url) {
  const text = String(url);
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.pathname !== "/" || parsed.search || parsed.hash) {
    throw new TypeError(`workersai-emulator: ${text} is not the root of an HTTP server, such as ${DEFAULT_URL}`);
  }
  return parsed.origin;
}
