// Plain workerd with a configuration file, for as long as it takes to use what it serves.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import workerd from "workerd";

/** Hand the roots of these sockets to `use`, by their names; the service "ai-emulator" is at `url`. */
export async function withWorkerd(config, sockets, url, use) {
  const serve = ["serve", config, "--control-fd=3", `--external-addr=ai-emulator=${new URL(url).host}`];
  const child = spawn(workerd.default, serve, { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  const ended = once(child, "exit");
  try {
    const roots = {};
    for await (const line of createInterface({ input: child.stdio[3] })) {
      const { socket, port } = JSON.parse(line);
      roots[socket] = `http://127.0.0.1:${port}`;
      if (sockets.every((name) => name in roots)) break;
    }
    await use(roots);
  } finally {
    child.kill();
    await ended;
  }
}
