// A chat with the hook of `@langchain/react`, which uses the streaming protocol.

import { useStream } from "@langchain/react";

import { Conversation, human, words } from "./conversation.jsx";

const query = new URLSearchParams(location.search);

/** @param transport  "sse" or "websocket" */
export function ProtocolChat({ thread, onThreadId, transport }) {
  const chat = useStream({
    apiUrl: query.get("api"),
    apiKey: null,
    assistantId: query.get("assistant"),
    threadId: thread,
    onThreadId,
    transport,
  });
  const edit = async ({ id }) => {
    // The metadata of a message names the checkpoint before the newest one, whichever message it is.
    const states = await chat.client.threads.getHistory(thread, { limit: 50 });
    const before = states.find(({ values }) => !values.messages?.some((message) => message.id === id));
    await chat.submit(human(words()), { forkFrom: before.checkpoint.checkpoint_id });
  };
  return (
    <Conversation
      chat={chat}
      send={() => void chat.submit(human(words()))}
      answer={() => void chat.respond(words(), { interruptId: chat.interrupt.id })}
      stop={() => void chat.stop()}
      branches={(message) => message.type === "human" && <button className="edit" onClick={() => void edit(message)}>edit</button>}
    >
      {chat.toolCalls.map((call) => (
        <output key={call.id} data-status={call.status}>{`${call.name} ${JSON.stringify(call.input)}`}</output>
      ))}
    </Conversation>
  );
}
