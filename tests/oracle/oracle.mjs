// Answers validation questions, one JSON document a line:
//   {"schema": …}   is the schema of the questions that follow; the answer is null
//   {"body": …}     is validated; the answer is the complaint, or null where the body is accepted
import { createInterface } from "node:readline";

// Node 20 lacks these methods of Set.
Set.prototype.difference ??= function (other) {
  return new Set([...this].filter((member) => !other.has(member)));
};
Set.prototype.union ??= function (other) {
  return new Set([...this, ...other]);
};

const { Cabidela } = await import("@cloudflare/cabidela");

let validator;

function complaint(body) {
  try {
    validator.validate(body);
    return null;
  } catch (refusal) {
    return refusal.message;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  let answer = null;
  if ("schema" in question) validator = new Cabidela(question.schema);
  else answer = complaint(question.body);
  process.stdout.write(JSON.stringify(answer) + "\n");
}
