// The same Worker as a Pages function.
import worker from "../../worker.js";

export const onRequest = ({ request, env }) => worker.fetch(request, env);
