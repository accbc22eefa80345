// Branches of a thread through the streaming protocol, on two gateways with one Postgres and one Redis.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { WebSocket } from "ws";

import { start, until } from "./rig.mjs";

const { Client } = await import("langgraph-sdk-newest");

const { DEERFLOW_TEST_POSTGRES_URL: postgres, DEERFLOW_TEST_REDIS_URL: redis } = process.env;
const CHANNELS = ["values", "updates", "messages", "lifecycle", "checkpoints"];

const config = (baseUrl) => `models:
  - name: scripted
    use: langchain_openai:ChatOpenAI
    model: scripted-1
    api_key: none
    base_url: ${baseUrl}
testing: {conformance_agent: true}
database: {backend: postgres, postgres_url: "${postgres}"}
stream_bridge: {type: redis, redis_url: "${redis}"}
`;

let nodes = [];
before(async () => {
  nodes.push(await start({ config }));
  nodes.push(await start({ config: () => config(nodes[0].modelUrl) }));
});
after(() => Promise.all(nodes.map((node) => node.stop())));

const user = (content) => ({ messages: [{ type: "human", content }] });
const textsOf = ({ messages }) => messages.map(({ content }) => content);
const clientOf = (node) => new Client({ apiUrl: node.origin, apiKey: null, callerOptions: { maxRetries: 0 } });
const endsOf = (events) => events.filter(({ method, params }) => method === "lifecycle" && ["completed", "failed", "interrupted"].includes(params.data.event));
const identity = ({ seq, event_id: id, method }) => `${seq} ${id} ${method}`;

/** Opens a thread on a node and collects its events. */
async function open(node, id, transport) {
  const webSocketFactory = (url) => new WebSocket(url);
  const thread = clientOf(node).threads.stream(id, { assistantId: "conformance", transport, webSocketFactory });
  const events = [];
  thread.onEvent((event) => events.push(event));
  await thread.subscribe({ channels: CHANNELS });
  return {
    events,
    /** Starts a run and waits for its end. */
    run: async (params) => {
      const before = endsOf(events).length;
      await thread.submitRun(params);
      await until(() => endsOf(events).length > before, "the end of the run");
      assert.equal(endsOf(events).at(-1).params.data.event, "completed");
    },
    /** Waits until these runs are read. */
    read: (runs) => until(() => endsOf(events).length >= runs, "the events"),
    start: (params) => thread.submitRun(params),
    close: () => thread.close(),
  };
}

/** Returns the checkpoint of the first state with these texts, as the event before the state names it. */
function checkpointOf(events, texts) {
  const at = events.findIndex(({ method, params }, index) =>
    method === "values" && events[index - 1].method === "checkpoints" && JSON.stringify(textsOf(params.data)) === JSON.stringify(texts));
  assert.ok(at > 0, `no checkpoint of ${texts}`);
  return events[at - 1].params.data.id;
}

for (const transport of ["sse", "websocket"]) {
  test(`a checkpoint that one node sends is forked on the other, ${transport}`, async () => {
    const id = crypto.randomUUID();
    const one = await open(nodes[0], id, transport);
    await one.run({ input: user("then say first") });
    await one.run({ input: user("then say second") });
    const other = await open(nodes[1], id, transport);
    await other.read(2);
    const checkpoint = checkpointOf(other.events, ["then say first", "first"]);
    await other.run({ input: user("then say another"), forkFrom: checkpoint });
    await one.read(3);
    assert.deepEqual(one.events.map(identity), other.events.map(identity));
    for (const node of nodes) {
      const { values } = await clientOf(node).threads.getState(id);
      assert.deepEqual(textsOf(values), ["then say first", "first", "then say another", "another"]);
      const history = await clientOf(node).threads.getHistory(id, { limit: 50 });
      const children = history.filter(({ parent_checkpoint: parent }) => parent?.checkpoint_id === checkpoint);
      assert.equal(children.length, 2);
      const branches = history.filter(({ next }) => next.length === 0).map(({ values }) => textsOf(values).at(-1));
      assert.deepEqual(branches, ["another", "second", "first"]);
    }
    // The thread continues on its newest branch.
    await one.run({ input: user("then say on") });
    const { values } = await clientOf(nodes[1]).threads.getState(id);
    assert.deepEqual(textsOf(values).slice(2), ["then say another", "another", "then say on", "on"]);
    await Promise.all([one.close(), other.close()]);
  });

  test(`a run without input repeats the work after a checkpoint, ${transport}`, async () => {
    const id = crypto.randomUUID();
    const one = await open(nodes[0], id, transport);
    await one.run({ input: user("then say first") });
    const { values: before } = await clientOf(nodes[0]).threads.getState(id);
    const other = await open(nodes[1], id, transport);
    await other.read(1);
    await other.run({ input: null, forkFrom: checkpointOf(other.events, ["then say first"]) });
    const { values } = await clientOf(nodes[0]).threads.getState(id);
    assert.deepEqual(textsOf(values), ["then say first", "first"]);
    assert.equal(values.messages[0].id, before.messages[0].id);
    assert.notEqual(values.messages[1].id, before.messages[1].id);
    await Promise.all([one.close(), other.close()]);
  });

  test(`checkpoints of other threads are refused, ${transport}`, async () => {
    const [id, foreign] = [crypto.randomUUID(), crypto.randomUUID()];
    const one = await open(nodes[0], id, transport);
    await one.run({ input: user("then say first") });
    const other = await open(nodes[1], foreign, transport);
    await other.run({ input: user("then say mine") });
    const checkpoint = checkpointOf(one.events, ["then say first", "first"]);
    await assert.rejects(other.start({ input: user("then say yours"), forkFrom: checkpoint }));
    assert.equal((await clientOf(nodes[0]).runs.list(foreign)).length, 1);
    await Promise.all([one.close(), other.close()]);
  });
}
