// client.threads.stream() of the newest SDK, over both transports.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { WebSocket } from "ws";

import { start } from "./rig.mjs";

const { Client } = await import("langgraph-sdk-newest");

const user = (content) => ({ messages: [{ type: "human", content }] });
const textOf = ({ content }) => (typeof content === "string" ? content : content.map((part) => part.text ?? "").join(""));
const WRITE = `[[tool:write_file ${JSON.stringify({ description: "write", path: "/mnt/user-data/outputs/a.md", content: "x" })}]] then say Done.`;

let rig;
before(async () => (rig = await start()));
after(() => rig.stop());

for (const prefix of ["", "/api"]) {
  for (const transport of ["sse", "websocket"]) {
    describe(`${prefix || "root"}, ${transport}`, () => {
      const open = async (work) => {
        const client = new Client({ apiUrl: rig.origin + prefix, apiKey: null, callerOptions: { maxRetries: 0 } });
        const webSocketFactory = (url) => new WebSocket(url);
        const thread = client.threads.stream(crypto.randomUUID(), { assistantId: "lead_agent", transport, webSocketFactory });
        try {
          return await work(thread);
        } finally {
          await thread.close();
        }
      };

      test("output is the final state", () =>
        open(async (thread) => {
          await thread.run.start({ input: user("then say hello") });
          const { messages } = await thread.output;
          assert.equal(textOf(messages.at(-1)), "hello");
        }));

      test("messages have their texts once", () =>
        open(async (thread) => {
          await thread.run.start({ input: user(WRITE) });
          const texts = [];
          for await (const message of thread.messages) texts.push(await message.text);
          assert.equal(texts.at(-1), "Done.");
          assert.equal(texts.filter((text) => text === "Done.").length, 1);
        }));
    });
  }
}
