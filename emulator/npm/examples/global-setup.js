// An emulator as long as the tests run; the binding finds it by the environment.
import { start } from "workersai-emulator";

export default async function ({ provide }) {
  const emulator = await start({ args: ["--script", "queued:5m, done"] });
  provide("emulator", emulator.url);
  return () => emulator.stop();
}
