// `wrangler dev` and `wrangler pages dev`, with these arguments, until the Worker has answered.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

// The environment is two folders up.
const wrangler = fileURLToPath(new URL("../../node_modules/wrangler/bin/wrangler.js", import.meta.url));
const command = [wrangler, ...process.argv.slice(2), "--ip", "127.0.0.1", "--port", "0"];
const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "inherit"] });
for await (const line of createInterface({ input: child.stdout })) {
  console.error(line);
  const ready = /Ready on (http:\/\/\S+)/.exec(line);
  if (!ready) continue;
  const reply = await fetch(`${ready[1]}/answers`);
  console.log("TOLD", await reply.text());
  child.kill("SIGINT");
}
