// Flows through the SDKs, under both prefixes.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { startCutter } from "./cutter.mjs";
import { start, until } from "./rig.mjs";

const MODES = ["values", "updates", "custom", "messages-tuple", "tasks", "checkpoints", "debug"];

const prompt = (words) => ({ userPrompt: words });
const dataOf = (parts, event) => parts.filter((part) => part.event === event).map(({ data }) => data);
const updatedNodes = (parts) => dataOf(parts, "updates").flatMap(Object.keys).filter((node) => node !== "__start__");
const flowEvents = (parts) =>
  dataOf(parts, "custom")
    .filter(({ eventType }) => eventType !== "edge_taken")
    .map(({ eventType, nodeId }) => (nodeId ? `${eventType} ${nodeId}` : eventType));
const types = (values) => values.messages.map(({ type }) => type);
const dataEvents = (parts) => parts.filter(({ event }) => event && event !== "end").map(({ id, event, data }) => ({ id, event, data }));
const checkpointOf = (state) => state.checkpoint_id ?? state.checkpoint.checkpoint_id;

async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

let gateway;
before(async () => (gateway = await start()));
after(() => gateway.stop());

for (const version of ["1", "2", "newest"]) {
  // At top level: a suite whose package is missing would pass as one without tests.
  const { Client } = await import(`langgraph-sdk-${version}`);
  for (const prefix of ["", "/api/langgraph"]) {
    describe(`flows, JS SDK ${version}, ${prefix || "root"}`, () => {
      const clientOf = (origin) => new Client({ apiUrl: origin + prefix, apiKey: null });
      const resumable = prefix ? {} : { streamResumable: true };
      const newThread = async () => (await client.threads.create({ threadId: randomUUID(), metadata: {} })).thread_id;
      const settled = (thread, run) =>
        until(async () => {
          const { status } = await client.runs.get(thread, run);
          return !["pending", "running"].includes(status) && status;
        }, "the run's end");
      const stateBefore = async (thread, node) =>
        (await client.threads.getHistory(thread, { limit: 50 })).find(({ next }) => next.length === 1 && next[0] === node);
      let client, thread;
      before(() => (client = clientOf(gateway.origin)));
      test.beforeEach(async () => (thread = await newThread()));

      test("flows are found by kind, with their graph", async () => {
        const found = await client.assistants.search({ metadata: { kind: "flow" }, limit: 100 });
        const chain = found.find((listed) => listed.graph_id === "flow-chain");
        assert.deepEqual([chain.metadata.kind, chain.metadata.schema_version], ["flow", "2.0"]);
        // The version of a flow of the folder is a number that follows from its content.
        assert.ok(chain.metadata.flow_version > 0);
        const graph = await client.assistants.getGraph(chain.assistant_id);
        assert.deepEqual(graph.nodes.map(({ id }) => id).sort(), ["__end__", "__start__", "draft", "finish", "polish"]);
        assert.deepEqual(
          graph.edges.map(({ source, target }) => `${source} ${target}`).sort(),
          ["__start__ draft", "draft polish", "finish __end__", "polish finish"],
        );
      });

      test("every mode shows each node once", async () => {
        const parts = await all(client.runs.stream(thread, "flow-chain", { input: prompt("tea"), streamMode: MODES }));
        assert.equal(parts[0].event, "metadata");
        assert.ok(parts.every(({ event }) => event !== "error"));
        assert.deepEqual(updatedNodes(parts), ["draft", "polish", "finish"]);
        const turn = (node) => ["node_started", "agent_selected", "turn_completed", "node_completed"].map((kind) => `${kind} ${node}`);
        const expected = ["run_started", ...turn("draft"), ...turn("polish"), "node_started finish", "node_completed finish", "run_completed"];
        assert.deepEqual(flowEvents(parts), expected);
        const values = dataOf(parts, "values").at(-1);
        assert.deepEqual(types(values), ["human", "ai"]);
        const [, answer] = values.messages;
        assert.deepEqual([answer.name, answer.content], ["Chain", values.result]);
        const pieces = dataOf(parts, "messages").filter(([chunk]) => chunk.id === answer.id);
        assert.equal(pieces.map(([chunk]) => chunk.content).join("").trim(), values.result);
        assert.ok(pieces.every(([, about]) => about.langgraph_node === "polish"));
        const stored = (await client.threads.getState(thread)).values;
        assert.deepEqual(stored.messages.map(({ id }) => id), values.messages.map(({ id }) => id));
        assert.deepEqual({ ...stored, messages: [] }, { ...values, messages: [] });
      });

      test("branches stream side by side, and a sub-flow in its namespace", async () => {
        const branches = await all(client.runs.stream(thread, "flow-branches", { input: prompt("tea"), streamMode: ["updates", "messages-tuple"] }));
        assert.deepEqual(updatedNodes(branches), ["split", "left", "middle", "right", "join", "summary", "finish"]);
        const nodes = dataOf(branches, "messages").map(([, about]) => about.langgraph_node);
        assert.ok(nodes.indexOf("right") < nodes.lastIndexOf("left"), nodes.join());
        const options = { input: prompt("tea"), streamMode: ["updates", "custom"], streamSubgraphs: true };
        const nested = await all(client.runs.stream(await newThread(), "flow-outer", options));
        assert.deepEqual(updatedNodes(nested), ["inner", "condense", "finish"]);
        assert.ok(nested.some(({ event }) => /^[a-z]+\|inner:/.test(event)), [...new Set(nested.map(({ event }) => event))].join());
      });

      test("a rejoining viewer has no gap, and a broken stream is resumed", async () => {
        const asked = { input: prompt("tea"), streamMode: MODES, ...resumable };
        const { run_id: run } = await client.runs.create(thread, "flow-branches", asked);
        const seen = [];
        for await (const part of client.runs.joinStream(thread, run, { lastEventId: "-1" })) if (seen.push(part) === 25) break;
        const rest = await all(client.runs.joinStream(thread, run, { lastEventId: seen.at(-1).id }));
        const whole = await all(client.runs.joinStream(thread, run, { lastEventId: "-1" }));
        assert.deepEqual(dataEvents([...seen, ...rest]), dataEvents(whole));
        assert.equal(await settled(thread, run), "success");
        const cutter = await startCutter(gateway.port, [6, 5]);
        try {
          const through = clientOf(cutter.origin);
          const other = await newThread();
          const parts = await all(
            through.runs.stream(other, "flow-chain", { ...asked, streamMode: ["custom", "messages-tuple"], onDisconnect: "continue" }),
          );
          assert.ok(cutter.streams().length > 1);
          const events = flowEvents(parts);
          assert.deepEqual([events.length, new Set(events).size, events.at(-1)], [12, 12, "run_completed"]);
        } finally {
          cutter.stop();
        }
      });

      test("a question is answered, after an answer that is no option", async () => {
        const wait = (payload) => client.runs.wait(thread, "flow-approval", payload);
        const [asked] = (await wait({ input: prompt("tea") })).__interrupt__;
        assert.deepEqual([asked.value.nodeId, asked.value.options], ["gate", ["approve", "reject"]]);
        assert.deepEqual((await client.threads.getState(thread)).next, ["gate"]);
        const [again] = (await wait({ command: { resume: "perhaps" } })).__interrupt__;
        assert.deepEqual(again.value.options, ["approve", "reject"]);
        const end = await wait({ command: { resume: { [again.id]: "reject" } } });
        assert.deepEqual(end.visits, { draft: 1, gate: 1, discard: 1, finish: 1 });
        assert.deepEqual(types(end), ["human", "ai"]);
        const fork = { command: { resume: "approve" }, checkpointId: checkpointOf(await stateBefore(thread, "gate")) };
        assert.deepEqual((await wait(fork)).visits, { draft: 1, gate: 1, publish: 1, finish: 1 });
      });

      test("breakpoints stop at nodes", async () => {
        for (const where of [{ interruptBefore: ["polish"] }, { interruptAfter: ["draft"] }]) {
          const other = await newThread();
          await client.runs.wait(other, "flow-chain", { input: prompt("tea"), ...where });
          const { next, values } = await client.threads.getState(other);
          assert.deepEqual([next, values.visits], [["polish"], { draft: 1 }]);
          const end = await client.runs.wait(other, "flow-chain", { input: null });
          assert.deepEqual(end.visits, { draft: 1, polish: 1, finish: 1 });
        }
      });

      test("goto and an earlier checkpoint run a node again", async () => {
        await client.runs.wait(thread, "flow-chain", { input: prompt("tea") });
        const checkpointId = checkpointOf(await stateBefore(thread, "polish"));
        const again = await all(client.runs.stream(thread, "flow-chain", { input: null, checkpointId, streamMode: ["updates"] }));
        assert.deepEqual(updatedNodes(again), ["polish", "finish"]);
        if (prefix) return; // DeerFlow's dialect has no `goto`.
        const gone = await all(client.runs.stream(thread, "flow-chain", { command: { goto: "polish" }, streamMode: ["updates"] }));
        assert.deepEqual(updatedNodes(gone), ["polish", "finish"]);
      });

      test("a failed node is repeated without the nodes before it", async () => {
        const mark = `mark${thread.replaceAll("-", "")}`;
        const calls = async () => [await gateway.calls(mark, "then say steady"), await gateway.calls(mark, "[[error 400")];
        await assert.rejects(client.runs.wait(thread, "flow-failing", { input: prompt(mark) }), /shaky/);
        assert.deepEqual(await calls(), [1, 1]);
        const values = await client.runs.wait(thread, "flow-failing", { input: null });
        assert.deepEqual(await calls(), [1, 2]);
        assert.deepEqual([values.visits.steady, types(values)], [1, ["human", "ai"]]);
      });

      test("a dry run calls no model", async () => {
        const mark = `dry${thread.replaceAll("-", "")}`;
        const values = await client.runs.wait(thread, "flow-approval", { input: prompt(mark), context: { dry_run: true } });
        assert.deepEqual([values.result, await gateway.calls(mark)], ["publish/normal/1", 0]);
      });

      test("the stop button leaves the thread at its node", async () => {
        const asked = { input: prompt("[[hold 3]] tea"), streamMode: ["messages-tuple"], ...resumable };
        const { run_id: run } = await client.runs.create(thread, "flow-chain", asked);
        for await (const part of client.runs.joinStream(thread, run, { lastEventId: "-1" })) {
          if (part.event === "messages" && part.data[0].type === "AIMessageChunk") break;
        }
        await client.runs.cancel(thread, run, true);
        assert.equal(await settled(thread, run), "interrupted");
        const state = await client.threads.getState(thread);
        assert.deepEqual([state.next, types(state.values)], [["draft"], ["human"]]);
      });
    });
  }
}
