// A real emulator from JavaScript: started, driven by its control plane, and stopped.
import { createAi, start } from "workersai-emulator";

const MODEL = "@cf/baai/bge-m3";
const told = {};
const command = JSON.parse(process.env.EMULATOR_COMMAND);
const emulator = await start({ command, args: ["--script", "queued:5m, done"] });
const AI = createAi(emulator.url);
const submit = () => AI.run(MODEL, { requests: [{ text: "a llama" }] }, { queueRequest: true });
const poll = ({ request_id }) => AI.run(MODEL, { request_id });
const thrown = (promise) => promise.then(() => null, ({ name, message }) => ({ name, message }));

const queued = await submit();
told.before = (await poll(queued)).status;
told.moved = (await emulator.clock.advance("5m")) - Date.now() > 4 * 60_000;
told.after = (await poll(queued)).responses.length;
told.batches = (await emulator.batches.list()).map(({ state, items }) => ({ state, items }));
told.request = (await emulator.batches.get(queued.request_id)).request;

await emulator.fail("submit", 3040);
told.refused = await thrown(submit());
await emulator.batches.fail((await submit()).request_id);
told.failed = await thrown(poll((await emulator.batches.list({ state: "failed" }))[0]));

await emulator.settings({ script: "instant" });
await emulator.outputs.add({ response: "billing" }, { text: "invoice" });
told.output = await AI.run("@cf/meta/llama-3.1-8b-instruct", { prompt: "an invoice" });
told.rules = (await emulator.rules.list()).map(({ fired }) => fired);
told.unknown = await thrown(emulator.batches.get("nothing"));

await emulator.reset();
told.forgotten = [await emulator.batches.list(), await emulator.rules.list()];
await emulator.stop();
told.stopped = (await thrown(fetch(emulator.url))) !== null;
console.log("TOLD", JSON.stringify(told));
