//! The scripted model over real HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Options, ScriptedOpenAi, refused_with};
use crate::sse::{SseError, SseFrame, SseStream};

async fn model() -> ScriptedOpenAi {
    ScriptedOpenAi::start(Options::default())
        .await
        .expect("a free port")
}

fn ask(text: &str) -> Value {
    let tools = ["bash", "ls"].map(|name| json!({"type": "function", "function": {"name": name}}));
    json!({"model": "m", "messages": [{"role": "user", "content": text}], "tools": tools})
}

async fn post(model: &ScriptedOpenAi, body: &Value) -> reqwest::Response {
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    let request = client
        .post(format!("{}/chat/completions", model.base_url))
        .bearer_auth("secret-key")
        .json(body);
    request.send().await.expect("headers")
}

async fn answer(model: &ScriptedOpenAi, body: &Value) -> Value {
    post(model, body).await.json().await.expect("json")
}

async fn stream(model: &ScriptedOpenAi, text: &str) -> SseStream {
    let mut body = ask(text);
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    SseStream::new(post(model, &body).await)
}

/// Reads all frames up to the end or the first error.
async fn read(mut stream: SseStream) -> (Vec<SseFrame>, Option<SseError>) {
    let mut frames = Vec::new();
    loop {
        match stream.next_frame().await {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

fn texts(frames: &[SseFrame], field: &str) -> Vec<String> {
    let deltas = frames.iter().filter_map(|frame| frame.json().ok());
    let texts = deltas.filter_map(|chunk| {
        chunk["choices"][0]["delta"][field]
            .as_str()
            .map(str::to_owned)
    });
    texts.filter(|text| !text.is_empty()).collect()
}

#[tokio::test]
async fn stream_has_reasoning_text_finish_reason_usage_and_done() {
    let model = model().await;
    let (frames, error) = read(
        stream(
            &model,
            "[[think let me see]] [[usage 11,7]] [[stop length]] then say one two",
        )
        .await,
    )
    .await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(texts(&frames, "reasoning_content"), ["let ", "me ", "see"]);
    assert_eq!(texts(&frames, "content"), ["one ", "two"]);
    let [.., finish, usage, done] = frames.as_slice() else {
        panic!("{frames:?}")
    };
    assert_eq!(
        finish.json().expect("json")["choices"][0]["finish_reason"],
        "length"
    );
    assert_eq!(
        usage.json().expect("json")["usage"],
        json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
    );
    assert_eq!(done.data.as_deref(), Some("[DONE]"));
}

#[tokio::test]
async fn tool_turns_come_first_and_only_for_offered_tools() {
    let model = model().await;
    let text = r#"[[tools:[{"name":"bash","args":{"command":"ls"}},{"name":"rm"},{"name":"ls"}]]] [[tool:rm {}]] [[rawtool:ls "{oops"]] then say done here"#;
    let mut body = ask(text);
    let mut made = Vec::new();
    for _ in 0..2 {
        let message = answer(&model, &body).await["choices"][0]["message"].clone();
        let calls = message["tool_calls"].as_array().expect("calls").clone();
        let messages = body["messages"].as_array_mut().expect("messages");
        messages.push(message);
        for call in calls {
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}));
            made.push((
                call["function"]["name"].clone(),
                call["function"]["arguments"].clone(),
            ));
        }
    }
    let expected = [
        ("bash", r#"{"command":"ls"}"#),
        ("ls", "{}"),
        ("ls", "{oops"),
    ];
    assert_eq!(
        made,
        expected.map(|(name, arguments)| (json!(name), json!(arguments)))
    );
    let last = answer(&model, &body).await;
    assert_eq!(last["choices"][0]["message"]["content"], "done here");
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        model
            .requests()
            .iter()
            .map(|request| request.step)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
}

#[tokio::test]
async fn fragmented_arguments_arrive_by_character_and_complete() {
    let model = model().await;
    let (frames, _) = read(stream(&model, r#"[[frag]][[tool:bash {"c":"ü"}]]"#).await).await;
    let parts: Vec<String> = frames
        .iter()
        .filter_map(|frame| frame.json().ok())
        .filter_map(|chunk| {
            chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(parts.concat(), r#"{"c":"ü"}"#);
    assert!(
        parts.iter().all(|part| part.chars().count() <= 1),
        "{parts:?}"
    );
}

#[tokio::test]
async fn scripted_errors_stop_after_their_tries() {
    let model = model().await;
    let body = ask("[[error 429 times=2]] then say better");
    for _ in 0..2 {
        let response = post(&model, &body).await;
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "0");
        assert_eq!(
            response.json::<Value>().await.expect("json")["error"]["type"],
            "rate_limit_error"
        );
    }
    assert_eq!(
        answer(&model, &body).await["choices"][0]["message"]["content"],
        "better"
    );
    assert_eq!(post(&model, &ask("[[error 500]]")).await.status(), 500);
    let asks_for_a_minute = post(&model, &ask("[[error 500 after=60]]")).await;
    assert_eq!(asks_for_a_minute.headers()["retry-after"], "60");
}

#[test]
fn refused_key_prefix_selects_the_status() {
    for (header, status) in [
        ("Bearer refused-401", Some(401)),
        ("Bearer refused-429-b", Some(429)),
        ("Bearer refused-200", None),
        ("Bearer k", None),
    ] {
        assert_eq!(refused_with(header), status, "{header}");
    }
}

#[tokio::test]
async fn cut_stream_delivers_its_pieces_then_breaks() {
    let model = model().await;
    let (frames, error) = read(stream(&model, "[[cut 3]] then say a b c d e").await).await;
    assert_eq!(texts(&frames, "content"), ["a ", "b ", "c "]);
    assert!(matches!(error, Some(SseError::Transport(_))), "{error:?}");
    let whole = post(&model, &ask("[[cut 3]] then say a b c d e")).await;
    assert_eq!(whole.status(), 200);
    assert!(whole.bytes().await.is_err());
}

#[tokio::test]
async fn cut_after_end_of_text_has_no_effect() {
    let model = model().await;
    let (frames, error) = read(stream(&model, "[[cut 3]] then say a b").await).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(texts(&frames, "content"), ["a ", "b"]);
}

#[tokio::test]
async fn hanging_stream_sends_only_headers() {
    let model = model().await;
    let hanging = stream(&model, "[[hang]]")
        .await
        .with_silence_limit(Duration::from_millis(50));
    assert_eq!(hanging.response().status(), 200);
    let (frames, error) = read(hanging).await;
    assert!(frames.is_empty());
    assert!(matches!(error, Some(SseError::Silence(_))), "{error:?}");
}

#[tokio::test]
async fn held_answer_continues_up_to_its_release() {
    let model = model().await;
    let release = async |query: &str| {
        let url = format!(
            "{}/__release{query}",
            model.base_url.trim_end_matches("/v1")
        );
        reqwest::get(url)
            .await
            .expect("an answer")
            .error_for_status()
            .expect("a release");
    };
    let pieces_of = async |text: &str| {
        let (frames, error) = read(
            stream(&model, text)
                .await
                .with_silence_limit(Duration::from_millis(50)),
        )
        .await;
        assert!(matches!(error, Some(SseError::Silence(_))), "{error:?}");
        texts(&frames, "content").len()
    };
    release("?word=there").await;
    assert!(pieces_of("[[hold 1 here]] then say a b c d").await <= 1);
    release("?word=here&to=3").await;
    assert!(pieces_of("[[hold 1 here]] then say a b c d").await <= 3);
    let (frames, _) = read(stream(&model, "[[hold 1 here]][[cut 3]] then say a b c d").await).await;
    assert_eq!(texts(&frames, "content"), ["a ", "b ", "c "]);
    release("?word=here").await;
    for let_go in [
        "[[hold 1 here]] then say a b",
        "[[hold 0 there]] then say a b",
        "[[hold 2]] then say a b",
    ] {
        let (frames, error) = read(stream(&model, let_go).await).await;
        assert!(error.is_none(), "{let_go}: {error:?}");
        assert_eq!(texts(&frames, "content"), ["a ", "b"], "{let_go}");
        assert_eq!(
            answer(&model, &ask(let_go)).await["choices"][0]["message"]["content"],
            "a b"
        );
    }
    assert_eq!(pieces_of("[[hold 0]] then say a b").await, 0);
    release("").await;
    assert!(
        read(stream(&model, "[[hold 1 nowhere]] then say a b").await)
            .await
            .1
            .is_none()
    );
}

#[tokio::test]
async fn garbage_chunk_is_followed_by_the_rest_of_the_stream() {
    let model = model().await;
    let (frames, error) = read(stream(&model, "[[garbage]] then say a b c d").await).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(texts(&frames, "content"), ["a ", "b ", "c ", "d"]);
    let broken = frames
        .iter()
        .position(|frame| frame.json().is_err())
        .expect("a broken chunk");
    assert_eq!(broken, 3);
    assert!(
        post(&model, &ask("[[garbage]]"))
            .await
            .json::<Value>()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn strict_mode_rejects_unpaired_histories_and_counts_them() {
    let model = ScriptedOpenAi::start(Options {
        strict: true,
        ..Options::default()
    })
    .await
    .expect("a free port");
    let mut body = ask("hi");
    assert_eq!(post(&model, &body).await.status(), 200);
    body["messages"]
        .as_array_mut()
        .expect("messages")
        .push(json!({"role": "tool", "tool_call_id": "x", "content": ""}));
    let refused = post(&model, &body).await;
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.expect("json");
    assert_eq!(
        refused["error"]["message"],
        r#"messages[1]: tool result for "x", a call that was never made"#
    );
    assert_eq!(model.rejections(), 1);
}

#[tokio::test]
async fn malformed_requests_and_scripts_are_rejected_with_reason() {
    let model = model().await;
    let fault = answer(&model, &ask("[[slwo 1x1]]")).await;
    assert_eq!(fault["error"]["message"], "unknown directive [[slwo]]");
    let fault = post(&model, &json!({"messages": 1})).await;
    assert_eq!(fault.status(), 400);
}

#[tokio::test]
async fn log_retains_requests_until_reset() {
    let model = model().await;
    let mut body = ask("hi");
    body["temperature"] = json!(0.5);
    answer(&model, &body).await;
    let origin = model.base_url.trim_end_matches("/v1");
    let log: Value = reqwest::get(format!("{origin}/__log"))
        .await
        .expect("log")
        .json()
        .await
        .expect("json");
    assert_eq!(log[0]["user"], "hi");
    assert_eq!(log[0]["tools"], json!(["bash", "ls"]));
    assert_eq!(log[0]["parameters"]["temperature"], 0.5);
    assert_eq!(log[0]["auth"], "Bearer secre");
    reqwest::get(format!("{origin}/__reset"))
        .await
        .expect("reset");
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn answers_depend_on_the_conversation_alone() {
    let model = model().await;
    let body = ask(r#"[[tool:bash {"command":"ls"}]]"#);
    assert_eq!(answer(&model, &body).await, answer(&model, &body).await);
    let other = ask(r#"[[tool:bash {"command":"ls"}]] x"#);
    let id = |answer: Value| answer["choices"][0]["message"]["tool_calls"][0]["id"].clone();
    assert_ne!(
        id(answer(&model, &body).await),
        id(answer(&model, &other).await)
    );
}
