// What a program may write, held against our types by the compiler.
import { connect, createAi, plugins, start, VERSION, type Control, type EmulatedAi } from "workersai-emulator";
import { createAi as forWorkers } from "workersai-emulator/ai";

export async function uses(): Promise<unknown[]> {
  const emulator = await start({ args: ["--script", "instant"] });
  const control: Control = connect(emulator.url, { account: "0".repeat(32) });
  const moment: Date = await control.clock.advance("5m");
  const [batch] = await control.batches.list({ state: "queued" });
  const AI: EmulatedAi = createAi(emulator.url);
  const stream: ReadableStream<Uint8Array> = await AI.run("m", { prompt: "hello", stream: true });
  const reply: Response = await forWorkers(emulator.url).run("m", {}, { returnRawResponse: true });
  const names: string[] = (await AI.models({ per_page: 1 })).map((model) => model.name);
  await control.outputs.add({ response: "billing" }, { text: "invoice", times: 1 });
  // @ts-expect-error there is no such state
  await control.batches.list({ state: "asleep" });
  await emulator.stop();
  return [moment, batch, stream, reply, names, plugins["workersai-emulator"], VERSION];
}
