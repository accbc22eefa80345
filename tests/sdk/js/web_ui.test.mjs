// The SDK calls of DeerFlow's web UI, through the URL it uses.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { startCutter } from "./cutter.mjs";
import { start, until } from "./rig.mjs";

const REPORT = "/mnt/user-data/outputs/report.md";
const WRITE_A_REPORT =
  `Write a report [[tool:write_file ${JSON.stringify({ description: "write", path: REPORT, content: "# R\n" })}]]` +
  `[[tool:present_files ${JSON.stringify({ filepaths: [REPORT] })}]] then say It is done.`;

/** The request of the contract, section 10.3. */
const message = (text) => ({
  input: { messages: [{ type: "human", content: [{ type: "text", text }], additional_kwargs: {} }] },
  config: { recursion_limit: 1000 },
  context: { thread_id: "T", model_name: "fake", mode: "flash", thinking_enabled: false, is_plan_mode: false, subagent_enabled: false },
  streamMode: ["values", "messages-tuple", "updates", "custom"],
  streamSubgraphs: false,
  onDisconnect: "continue",
});

const textOf = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text ?? "").join(""));
const visibleMessages = (values) =>
  values.messages.filter((m) => m.type !== "system" && !m.additional_kwargs?.hide_from_ui).map((m) => [m.type, textOf(m)]);
const valuesOf = (parts) => parts.filter((part) => part.event === "values").at(-1).data;
const tokensOf = (parts) =>
  parts
    .filter((part) => part.event === "messages" && part.data[0].type === "AIMessageChunk")
    .map((part) => textOf(part.data[0]))
    .join("");
const counted = (pieces) => Array.from({ length: pieces }, (_, n) => `tok${n} `).join("");
const dataEvents = (parts) => parts.filter((part) => part.event && part.event !== "end").map(({ id, event, data }) => ({ id, event, data }));

/** Returns a seeded random generator (mulberry32) of integers below a limit. */
function seededRandom(seed) {
  return (limit) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

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
  describe(`JS SDK ${version}`, () => {
    const clientOf = (origin) => new Client({ apiUrl: `${origin}/api/langgraph`, apiKey: null });
    const settled = (client, thread, run) =>
      until(async () => {
        const { status } = await client.runs.get(thread, run);
        return !["pending", "running"].includes(status) && status;
      }, "the run's end");
    const newThread = async (client) => (await client.threads.create({ threadId: randomUUID(), metadata: {} })).thread_id;
    /** Starts a long run and waits until it has streamed some text. */
    const startStreamingRun = async (client, thread) => {
      const { run_id: run } = await client.runs.create(thread, "lead_agent", message("[[slow 1000x20ms]]"));
      for await (const part of client.runs.joinStream(thread, run, { lastEventId: "-1" })) {
        if (part.event === "messages" && part.data[0].content === "tok3 ") return run;
      }
      throw new Error("the run ended early");
    };
    let client;
    before(() => (client = clientOf(gateway.origin)));

    test("a first message with tools is streamed, stored and listed", async () => {
      const id = randomUUID();
      const created = await client.threads.create({ threadId: id, metadata: {} });
      assert.deepEqual([created.thread_id, created.status], [id, "idle"]);
      let run;
      const parts = await all(client.runs.stream(id, "lead_agent", { ...message(WRITE_A_REPORT), onRunCreated: (made) => (run = made) }));
      assert.equal(run.thread_id, id);
      assert.deepEqual([parts[0].event, parts[0].data.run_id, parts[0].data.thread_id], ["metadata", run.run_id, id]);
      assert.ok(parts.every((part) => part.event !== "error"));
      const values = valuesOf(parts);
      assert.deepEqual(visibleMessages(values).map(([type]) => type), ["human", "ai", "tool", "ai", "tool", "ai"]);
      assert.deepEqual(values.artifacts, [REPORT]);
      const titles = parts.filter((part) => part.event === "updates").flatMap((part) => Object.values(part.data)).filter((update) => update?.title);
      assert.equal(titles.length, 1);
      // The web UI reads these again when the stream has ended.
      const [head] = await client.threads.getHistory(id, { limit: 1 });
      assert.deepEqual(head.values.messages.map((m) => m.id), values.messages.map((m) => m.id));
      const [found] = await client.threads.search({ limit: 50, sortBy: "updated_at", sortOrder: "desc" });
      assert.deepEqual([found.thread_id, found.values.title, found.status], [id, titles[0].title, "idle"]);
      assert.equal((await client.runs.get(id, run.run_id)).status, "success");
      assert.deepEqual((await client.runs.list(id)).map((listed) => listed.run_id), [run.run_id]);
      assert.equal((await client.threads.get(id)).values.title, titles[0].title);
    });

    test("chunks concatenate to their message, under one id", async () => {
      const parts = await all(client.runs.stream(await newThread(client), "lead_agent", message(WRITE_A_REPORT)));
      const finals = valuesOf(parts).messages.filter((m) => m.type === "ai");
      for (const final of finals) {
        const pieces = parts.filter((part) => part.event === "messages" && part.data[0].id === final.id).map((part) => part.data[0]);
        assert.equal(pieces.map(textOf).join(""), textOf(final));
        const args = pieces.flatMap((piece) => piece.tool_call_chunks).map((piece) => piece.args ?? "").join("");
        assert.deepEqual(args ? [JSON.parse(args)] : [], final.tool_calls.map((call) => call.args));
      }
      assert.equal(finals.length, 3);
    });

    test("a rejoining viewer receives all events, or those after an id", async () => {
      const thread = await newThread(client);
      const { run_id: run } = await client.runs.create(thread, "lead_agent", message("[[slow 60x15ms]]"));
      const seen = [];
      for await (const part of client.runs.joinStream(thread, run, { lastEventId: "-1" })) if (seen.push(part) === 12) break;
      const rest = await all(client.runs.joinStream(thread, run, { lastEventId: seen.at(-1).id }));
      const whole = await all(client.runs.joinStream(thread, run, { lastEventId: "-1" }));
      assert.deepEqual(dataEvents([...seen, ...rest]), dataEvents(whole));
      assert.equal(tokensOf(whole), counted(60));
      assert.equal(await settled(client, thread, run), "success");
    });

    test("a broken stream is resumed without gap or repetition", async () => {
      const cutter = await startCutter(gateway.port, [6, 5]);
      try {
        const through = clientOf(cutter.origin);
        const thread = await newThread(through);
        const parts = await all(through.runs.stream(thread, "lead_agent", { ...message("[[slow 40x50ms]]"), streamMode: ["messages-tuple"] }));
        assert.equal(tokensOf(parts), counted(40));
        assert.deepEqual(cutter.streams().map(({ method }) => method), ["POST", "GET", "GET"]);
        assert.ok(cutter.streams().slice(1).every(({ cursor }) => cursor));
        assert.deepEqual((await through.runs.list(thread)).map(({ status }) => status), ["success"]);
      } finally {
        cutter.stop();
      }
    });

    // STREAMS is the number of streams (20), SEED determines the cuts.
    test("randomly broken streams arrive completely", async (context) => {
      const streams = Number(process.env.STREAMS ?? 20);
      const below = seededRandom(Number(process.env.SEED ?? 1));
      const places = Array.from({ length: streams }, () => Array.from({ length: 1 + below(3) }, () => 1 + below(30)));
      const tell = async (cuts) => {
        const cutter = await startCutter(gateway.port, cuts);
        try {
          const through = clientOf(cutter.origin);
          const thread = await newThread(through);
          const parts = await all(through.runs.stream(thread, "lead_agent", { ...message("[[slow 40x10ms]]"), streamMode: ["values", "messages-tuple"] }));
          assert.equal(tokensOf(parts), counted(40), cuts.join());
          assert.deepEqual((await through.runs.list(thread)).map(({ status }) => status), ["success"]);
          return cutter.streams().length - 1;
        } finally {
          cutter.stop();
        }
      };
      let cut = 0;
      const work = async () => {
        for (let next = places.pop(); next; next = places.pop()) {
          const cuts = await tell(next);
          cut += cuts;
        }
      };
      await Promise.all(Array.from({ length: 16 }, work));
      context.diagnostic(`${streams} streams whole, cut ${cut} times`);
      // Each is cut at least once: the first cut is long before the end.
      assert.ok(cut >= streams, `cut ${cut} times`);
    });

    test("the stop button cancels the run, and the partial answer stays", async () => {
      const thread = await newThread(client);
      const run = await startStreamingRun(client, thread);
      await client.runs.cancel(thread, run);
      assert.equal(await settled(client, thread, run), "interrupted");
      const [question, answer] = visibleMessages((await client.threads.getState(thread)).values);
      assert.deepEqual(question, ["human", "[[slow 1000x20ms]]"]);
      assert.ok(answer[1].startsWith("tok0 tok1 tok2 tok3 "), answer[1]);
    });

    test("a cancel with wait returns after the end, and a finished run is not cancelled", async () => {
      const thread = await newThread(client);
      const run = await startStreamingRun(client, thread);
      await client.runs.cancel(thread, run, true, "rollback");
      assert.equal((await client.runs.get(thread, run)).status, "error");
      assert.deepEqual(visibleMessages({ messages: [], ...(await client.threads.getState(thread)).values }), []);
      const { run_id: done } = await client.runs.create(thread, "lead_agent", message("then say x"));
      assert.equal(await settled(client, thread, done), "success");
      await assert.rejects(client.runs.cancel(thread, done), (error) => error.status === 409 && /is not cancellable/.test(error.message));
    });

    test("a busy thread rejects, interrupts or rolls back", async () => {
      const thread = await newThread(client);
      const first = await startStreamingRun(client, thread);
      await assert.rejects(client.runs.create(thread, "lead_agent", message("hi")), (error) => error.status === 409);
      const after = await client.runs.wait(thread, "lead_agent", { ...message("then say y"), multitaskStrategy: "interrupt" });
      assert.deepEqual(visibleMessages(after).slice(-2), [["human", "then say y"], ["ai", "y"]]);
      assert.equal((await client.runs.get(thread, first)).status, "interrupted");
    });

    test("state and history are read and written", async () => {
      const thread = await newThread(client);
      assert.deepEqual(visibleMessages(await client.runs.wait(thread, "lead_agent", message("then say x"))), [["human", "then say x"], ["ai", "x"]]);
      await client.threads.updateState(thread, { values: { title: "A new name" } });
      assert.equal((await client.threads.getState(thread)).values.title, "A new name");
      const history = await client.threads.getHistory(thread, { limit: 50 });
      assert.deepEqual([history[0].values.title, history.length >= 3], ["A new name", true]);
      await client.threads.update(thread, { metadata: { deerflow_pinned: true } });
      assert.equal((await client.threads.search({ limit: 1 }))[0].thread_id, thread);
      await client.threads.update(thread, { metadata: { deerflow_pinned: false } });
      await client.threads.delete(thread);
      await assert.rejects(client.threads.get(thread), (error) => error.status === 404);
    });

    test("a rejected request is not retried", async () => {
      const cutter = await startCutter(gateway.port, []);
      try {
        const through = clientOf(cutter.origin);
        const thread = await newThread(through);
        await assert.rejects(all(through.runs.stream(randomUUID(), "lead_agent", message("hi"))), (error) => error.status === 404);
        await assert.rejects(all(through.runs.stream(thread, "lead_agent", { ...message("hi"), webhook: "http://x" })), (error) => error.status === 422);
        assert.equal(cutter.streams().length, 2);
      } finally {
        cutter.stop();
      }
    });
  });
}
