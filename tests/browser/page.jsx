// A chat page that uses the official hooks. Parameters of its URL:
//   api, assistant  the server and the assistant
//   thread          the thread; the page sets it once it is known
//   transport       if set, "sse" or "websocket": the streaming protocol; otherwise the streams of runs. The page's buttons change it
//   deerflow        if set: the options of DeerFlow's web UI, whose streams are all resumable and whose history has one whole entry
//   shared          if set: an active run is stored for all tabs, not only for this one

import { useState } from "react";
import { createRoot } from "react-dom/client";

import { ClassicChat } from "./classic_chat.jsx";
import { ProtocolChat } from "./protocol_chat.jsx";

/** Returns a parameter of the URL with its setter. */
function useParameter(name) {
  const [value, setValue] = useState(new URLSearchParams(location.search).get(name));
  const set = (to) => {
    const query = new URLSearchParams(location.search);
    if (to) query.set(name, to);
    else query.delete(name);
    history.replaceState(null, "", `?${query}`);
    setValue(to);
  };
  return [value, set];
}

function Page() {
  const [thread, onThreadId] = useParameter("thread");
  const [transport, setTransport] = useParameter("transport");
  return (
    <>
      {transport
        ? <ProtocolChat key={transport} thread={thread} onThreadId={onThreadId} transport={transport} />
        : <ClassicChat thread={thread} onThreadId={onThreadId} />}
      {["", "sse", "websocket"].map((one) => <button key={one} id={`to-${one || "classic"}`} onClick={() => setTransport(one)}>{one || "classic"}</button>)}
    </>
  );
}

createRoot(document.getElementById("root")).render(<Page />);
