// A chat page that uses the official hook. Parameters of its URL:
//   api, assistant  the server and the assistant
//   thread          the thread; the page sets it once it is known
//   deerflow        if set: the options of DeerFlow's web UI, whose streams are all resumable and whose history has one whole entry
//   shared          if set: an active run is stored for all tabs, not only for this one

import { Client } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const textOf = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text ?? "").join(""));
const human = (content) => ({ messages: [{ type: "human", content }] });
const deerflow = query.has("deerflow");
const streamed = { streamMode: ["values", "messages-tuple"], streamResumable: true, onDisconnect: "continue" };
const client = new Client({ apiUrl: query.get("api"), apiKey: null });
if (deerflow) {
  // The web UI omits the options that the hook adds for rejoining runs.
  const stream = client.runs.stream.bind(client.runs);
  client.runs.stream = (thread, assistant, { streamResumable, ...request }) => stream(thread, assistant, request);
}
const input = (id) => document.getElementById(id).value;

/** All texts that were rendered for the last answer, for tests. */
window.drawn = [];

function Chat() {
  const [thread, setThread] = useState(query.get("thread"));
  const chat = useStream({
    client,
    assistantId: query.get("assistant"),
    threadId: thread,
    onThreadId: (id) => {
      query.set("thread", id);
      history.replaceState(null, "", `?${query}`);
      setThread(id);
    },
    reconnectOnMount: query.has("shared") ? () => localStorage : true,
    fetchStateHistory: { limit: deerflow ? 1 : 50 },
  });
  const last = chat.messages.at(-1);
  const answer = last?.type === "ai" ? textOf(last) : "";
  useEffect(() => void window.drawn.push(answer), [answer]);
  const edit = (message) => {
    const { parent_checkpoint: checkpoint } = chat.getMessagesMetadata(message).firstSeenState;
    chat.submit(human(input("words")), { ...streamed, checkpoint });
  };
  return (
    <main data-loading={chat.isLoading} data-error={chat.error ? String(chat.error) : undefined}>
      <ol>
        {chat.messages.map((message) => {
          const { branch, branchOptions } = chat.getMessagesMetadata(message) ?? {};
          const side = (step) => chat.setBranch(branchOptions[branchOptions.indexOf(branch) + step]);
          return (
            <li key={message.id} data-type={message.type}>
              <p>{textOf(message)}</p>
              {message.tool_calls?.map((call) => <code key={call.id}>{`${call.name} ${JSON.stringify(call.args)}`}</code>)}
              {message.type === "human" && <button className="edit" onClick={() => edit(message)}>edit</button>}
              {branchOptions?.length > 1 && <button className="other" onClick={() => side(branchOptions.indexOf(branch) > 0 ? -1 : 1)}>other</button>}
            </li>
          );
        })}
      </ol>
      {chat.interrupt && <aside>{chat.interrupt.value?.question}</aside>}
      <input id="words" />
      <button id="send" onClick={() => chat.submit(human(input("words")), streamed)}>send</button>
      <button id="answer" onClick={() => chat.submit(undefined, { ...streamed, command: { resume: input("words") } })}>answer</button>
      <button id="stop" onClick={() => chat.stop()}>stop</button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
