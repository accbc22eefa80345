// Streams and sockets of the streaming protocol that break in the middle of events, or arrive in small pieces.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { WebSocket } from "ws";

import { startCutter } from "./cutter.mjs";
import { start, until } from "./rig.mjs";

const { Client } = await import("langgraph-sdk-newest");

const CHANNELS = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "custom"];
/** Odd sizes, so that pieces begin and end in the middle of names, numbers and characters of several bytes. */
const SLOW = { sizes: [1, 7, 3, 251, 61, 2, 509], every: 1 };
const THREADS = 3;

const user = (content) => ({ messages: [{ type: "human", content }] });
const counted = (pieces) => Array.from({ length: pieces }, (_, n) => `tok${n} `).join("");
const identity = ({ seq, event_id: id, method }) => `${seq} ${id} ${method}`;
const isEnd = ({ method, params }) => method === "lifecycle" && params.namespace.length === 0 && params.data.event === "completed";

/** Returns a function with random numbers from 0 to 1, always the same for a seed. */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

let rig;
before(async () => (rig = await start()));
after(() => rig.stop());

/** Reads all events of a thread up to the end of its first run, on a connection without a proxy. */
async function replay(thread) {
  const body = JSON.stringify({ channels: CHANNELS });
  const request = { method: "POST", headers: { "content-type": "application/json" }, body };
  const answer = await fetch(`${rig.origin}/threads/${thread}/stream/events`, request);
  const events = [];
  let rest = "";
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + text).split("\r\n\r\n");
    rest = frames.pop();
    for (const frame of frames) {
      const line = frame.split("\r\n").find((line) => line.startsWith("data: "));
      if (line) events.push(JSON.parse(line.slice("data: ".length)));
    }
    if (events.some(isEnd)) break;
  }
  return events;
}

/** Returns the text of the last message, joined from its fragments. */
function joined(events) {
  let text = "";
  for (const { method, params } of events) {
    if (method !== "messages" || params.namespace.length > 0) continue;
    if (params.data.event === "message-start") text = "";
    if (params.data.event === "content-block-delta") text += params.data.delta.text ?? "";
  }
  return text;
}

/** Runs a new thread through the proxy while `meanwhile` acts, and compares what arrives with the thread. */
async function assertWhole(transport, cutter, words, answer, meanwhile = () => {}) {
  const client = new Client({ apiUrl: cutter.origin, apiKey: null, callerOptions: { maxRetries: 0 } });
  const thread = client.threads.stream(crypto.randomUUID(), {
    assistantId: "lead_agent",
    transport,
    webSocketFactory: (url) => new WebSocket(url),
    maxReconnectAttempts: 20,
    reconnectDelayMs: () => 20,
  });
  try {
    const events = [];
    const subscription = await thread.subscribe({ channels: CHANNELS });
    await thread.submitRun({ input: user(words) });
    const read = async () => {
      for await (const event of subscription) {
        events.push(event);
        if (isEnd(event)) return;
      }
    };
    await Promise.all([read(), meanwhile(events)]);
    const all = await replay(thread.threadId);
    assert.deepEqual(events.map(identity), all.map(identity));
    assert.equal(joined(events), answer);
    const { values } = await new Client({ apiUrl: rig.origin, apiKey: null }).threads.getState(thread.threadId);
    assert.equal(values.messages.at(-1).content, answer);
  } finally {
    await thread.close();
  }
}

for (const transport of ["sse", "websocket"]) {
  for (const [speed, slow] of [["fast", undefined], ["slow", SLOW]]) {
    describe(`${transport}, ${speed}`, () => {
      test("connections that break in the middle of an event lose and repeat nothing", async () => {
        const random = seeded(transport.length);
        const cutter = await startCutter(rig.port, [], slow);
        try {
          for (let run = 0; run < THREADS; run++) {
            const word = crypto.randomUUID().slice(0, 8);
            const cutOften = async (events) => {
              for (let shown = 4; shown < 40; shown += 4) {
                await until(() => joined(events) === counted(shown), `${shown} words`);
                // A socket that breaks while its client subscribes again is not opened again, so each break is after that.
                cutter.cutAfter(random() * 4);
                await rig.release(word, shown + 4);
              }
              await until(() => joined(events) === counted(40), "the last words");
              await rig.release(word);
            };
            await assertWhole(transport, cutter, `[[slow 44x1ms]][[hold 4 ${word}]]`, counted(44), cutOften);
          }
          const connections = cutter.streams().length;
          assert.ok(connections >= 10 * THREADS, `only ${connections} connections`);
        } finally {
          cutter.stop();
        }
      });

      test("characters of several bytes arrive whole", async () => {
        const cutter = await startCutter(rig.port, [], slow);
        try {
          await assertWhole(transport, cutter, "then say Größe 漢字 🦌 €", "Größe 漢字 🦌 €");
        } finally {
          cutter.stop();
        }
      });
    });
  }
}
