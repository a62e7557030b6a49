// Queues texts, polls batches, streams a text and lists models: each through env.AI.

const EMBEDDING = "@cf/baai/bge-m3";
const TEXT = "@cf/meta/llama-3.1-8b-instruct";

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const [, what, id] = pathname.split("/");
    try {
      switch (`${request.method} /${what}`) {
        case "POST /batches":
          return Response.json(await queue(env.AI, await request.json()), { status: 202 });
        case "GET /batches":
          return Response.json(await env.AI.run(EMBEDDING, { request_id: id }));
        case "GET /say": {
          const events = await env.AI.run(TEXT, { prompt: searchParams.get("prompt"), stream: true });
          return new Response(events, { headers: { "content-type": "text/event-stream" } });
        }
        case "GET /models":
          return Response.json((await env.AI.models({ task: "Text Embeddings" })).map(({ name }) => name));
        default:
          return new Response("not found", { status: 404 });
      }
    } catch (fault) {
      return Response.json({ error: fault.message }, { status: 502 });
    }
  },
};

function queue(AI, texts) {
  const requests = texts.map((text, n) => ({ text, external_reference: String(n) }));
  return AI.run(EMBEDDING, { requests }, { queueRequest: true });
}
