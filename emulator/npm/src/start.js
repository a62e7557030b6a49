// A server for as long as tests run: the Python command, found on PATH or fetched by uvx or pipx.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { connect } from "./control.js";
import { VERSION } from "./version.js";

const NAME = "workersai-emulator";
const RUNNERS = [
  [NAME],
  ["uvx", `${NAME}==${VERSION}`],
  ["pipx", "run", `${NAME}==${VERSION}`],
];
const GRACE_MS = 5000;

/**
 * Start an emulator on a free port, and point this process's WORKERS_AI_EMULATOR_URL at it, which the plugin reads.
 *
 * Returns its control (see `connect`) with `stop()`. `args` are options of `workersai-emulator serve`; `command` is
 * what runs it, such as ["python", "-m", "workersai_emulator.cli"]. Throws an Error when no command is found, when
 * the emulator ends before it is up, or when its version does not fit.
 */
export async function start({ args = [], command, env = process.env } = {}) {
  const runners = command === undefined ? RUNNERS : [command];
  for (const [program, ...before] of runners) {
    const child = spawn(program, [...before, "serve", "--port", "0", ...args], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      await once(child, "spawn");
    } catch (fault) {
      if (fault.code === "ENOENT") continue;
      throw fault;
    }
    return await serving(child, program);
  }
  const tried = runners.map(([program]) => program).join(", ");
  throw new Error(`workersai-emulator: none of ${tried} is on PATH; pip install workersai-emulator`);
}

async function serving(child, program) {
  const complaints = [];
  child.stderr.setEncoding("utf8").on("data", (text) => complaints.push(text));
  const ended = once(child, "close");
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), ended.then(() => null)]);
  if (first === null) {
    throw new Error(`workersai-emulator: ${program} ended before it was up: ${complaints.join("").trim()}`);
  }
  complaints.length = 0;
  child.stderr.removeAllListeners("data").resume();
  const stop = () => stopped(child, ended);
  const before = process.env.WORKERS_AI_EMULATOR_URL;
  process.env.WORKERS_AI_EMULATOR_URL = first[0].trim();
  const control = connect();
  try {
    await control.check();
  } catch (fault) {
    await stop();
    throw fault;
  }
  // Whoever forgets to stop it is not kept from ending, and takes it along.
  child.unref();
  child.stdout.unref?.();
  child.stderr.unref?.();
  const killed = () => child.kill();
  process.once("exit", killed);
  return {
    ...control,
    async stop() {
      process.off("exit", killed);
      if (before === undefined) delete process.env.WORKERS_AI_EMULATOR_URL;
      else process.env.WORKERS_AI_EMULATOR_URL = before;
      await stop();
    },
  };
}

async function stopped(child, ended) {
  child.ref();
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
  await ended;
  clearTimeout(late);
}
