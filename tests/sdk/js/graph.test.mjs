// The graph of an assistant, compared with the runs of the assistant.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { start } from "./rig.mjs";

const { Client } = await import("langgraph-sdk-newest");

const LIST = `[[tool:ls ${JSON.stringify({ description: "list", path: "/mnt/user-data/outputs" })}]] then say Done.`;

let gateway, client;
before(async () => {
  gateway = await start();
  client = new Client({ apiUrl: gateway.origin, apiKey: null });
});
after(() => gateway.stop());

/** Returns the tasks that a run on a new thread executed, in order, and all nodes that updated the state, with the model's tool calls. */
async function executed(words) {
  const { thread_id: thread } = await client.threads.create();
  const tasks = [], nodes = [], calls = [];
  const input = { messages: [{ type: "human", content: words }] };
  for await (const { event, data } of client.runs.stream(thread, "lead_agent", { input, streamMode: ["tasks", "updates"] })) {
    if (event === "tasks" && "input" in data) tasks.push(data.name);
    if (event !== "updates") continue;
    nodes.push(...Object.keys(data));
    calls.push(...(data.model?.messages ?? []).flatMap(({ tool_calls: calls }) => calls.map(({ name }) => name)));
  }
  return { tasks, nodes, calls };
}

/** Reports whether edges lead from one node to another over hooks, which are no tasks. */
function leads(edges, source, target) {
  const next = edges.filter((edge) => edge.source === source).map((edge) => edge.target);
  return next.includes(target) || next.some((node) => node.includes("Middleware.") && leads(edges, node, target));
}

test("the graph of lead_agent has the edges, nodes and tools of its runs", async () => {
  const { nodes, edges } = await client.assistants.getGraph("lead_agent");
  const run = await executed(LIST);
  assert.deepEqual(run.tasks, ["model", "tools", "model"]);
  const path = ["__start__", ...run.tasks, "__end__"];
  path.slice(1).forEach((target, index) => assert.ok(leads(edges, path[index], target), `no edges from ${path[index]} to ${target}`));
  assert.ok(!leads(edges, "tools", "__end__"));
  const ids = nodes.map(({ id }) => id);
  assert.deepEqual(run.nodes.filter((node) => !ids.includes(node)), []);
  assert.deepEqual(run.calls, ["ls"]);
  const { metadata } = nodes.find(({ id }) => id === "tools");
  const tools = ["ls", "write_file", "present_files", "ask_clarification"];
  assert.deepEqual(tools.filter((tool) => !metadata.__tools.includes(tool)), []);
  assert.ok(nodes.every(({ id, metadata }) => id === "tools" || !metadata));
});

test("edges of lead_agent are conditional if the model decides about them", async () => {
  const { edges } = await client.assistants.getGraph("lead_agent");
  const conditional = edges.filter((edge) => edge.conditional);
  assert.equal(new Set(conditional.map(({ source }) => source)).size, 1);
  assert.equal(conditional.length, 2);
  assert.ok(conditional.some(({ target }) => target === "tools"));
  const others = edges.filter((edge) => !edge.conditional).map(({ source }) => source);
  assert.equal(new Set(others).size, others.length, "a node has two edges that are always taken");
});
