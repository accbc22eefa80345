// A chat with the hook of `@langchain/langgraph-sdk/react`, which uses the streams of runs.

import { Client } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";

import { Conversation, human, words } from "./conversation.jsx";

const streamed = { streamMode: ["values", "messages-tuple"], streamResumable: true, onDisconnect: "continue" };

const query = new URLSearchParams(location.search);
const deerflow = query.has("deerflow");
const client = new Client({ apiUrl: query.get("api"), apiKey: null });
if (deerflow) {
  // The web UI omits the options that the hook adds for rejoining runs.
  const stream = client.runs.stream.bind(client.runs);
  client.runs.stream = (thread, assistant, { streamResumable, ...request }) => stream(thread, assistant, request);
}

export function ClassicChat({ thread, onThreadId }) {
  const chat = useStream({
    client,
    assistantId: query.get("assistant"),
    threadId: thread,
    onThreadId,
    reconnectOnMount: query.has("shared") ? () => localStorage : true,
    fetchStateHistory: { limit: deerflow ? 1 : 50 },
  });
  const edit = (message) => {
    const { parent_checkpoint: checkpoint } = chat.getMessagesMetadata(message).firstSeenState;
    chat.submit(human(words()), { ...streamed, checkpoint });
  };
  const branches = (message) => {
    const { branch, branchOptions } = chat.getMessagesMetadata(message) ?? {};
    const side = (step) => chat.setBranch(branchOptions[branchOptions.indexOf(branch) + step]);
    return (
      <>
        {message.type === "human" && <button className="edit" onClick={() => edit(message)}>edit</button>}
        {branchOptions?.length > 1 && <button className="other" onClick={() => side(branchOptions.indexOf(branch) > 0 ? -1 : 1)}>other</button>}
      </>
    );
  };
  return (
    <Conversation
      chat={chat}
      send={() => chat.submit(human(words()), streamed)}
      answer={() => chat.submit(undefined, { ...streamed, command: { resume: words() } })}
      stop={() => chat.stop()}
      branches={branches}
    />
  );
}
