// A server that answers as it is told and remembers what it was asked.
import { createServer } from "node:http";
import { once } from "node:events";

import { VERSION } from "../index.js";

/** Serve until the test is over: `answer` gets each request and may return `{ status, headers, body }`. */
export async function serving(test, answer = () => undefined) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const { method, url, headers } = request;
    const one = { method, url, headers, body: Buffer.concat(pieces).toString() };
    asked.push(one);
    const healthy = url === "/__emulator__/health" ? { body: { status: "ok", version: VERSION } } : {};
    const told = answer(one) ?? healthy;
    const isText = typeof (told.body ?? "") === "string";
    response.writeHead(told.status ?? 200, { "content-type": "application/json", ...told.headers });
    response.end(isText ? told.body : JSON.stringify(told.body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}
