//! All that clients do with runs, on a gateway that may die at any moment, and what they were promised meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use deerflow_tests::local_server::LocalServer;
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::follower::{Seen, tell};
use crate::rig::{Cluster, PATIENCE, Story, Web, body, text};

/// How long acts may take together; they are cut short by a gateway that is gone.
const ACTS_TAKE: Duration = PATIENCE;
/// A call whose sender died is made again when its lease is over.
const CALLED_WITHIN: Duration = Duration::from_secs(90);

/// What a client was told, and may rely on.
#[derive(Debug)]
enum Promise {
    /// The run ends, well if its story is told here.
    Run {
        thread: String,
        run: String,
        story: Option<Story>,
    },
    /// The thread is gone.
    Gone { thread: String },
    /// The file is there with these bytes.
    File {
        thread: String,
        name: &'static str,
        content: String,
    },
    /// A request that is sent again under its key makes no second run.
    Keyed { thread: String, story: Story },
    /// The webhook of the run is called.
    Called { run: String },
    /// The viewer gets all of it.
    Seen { story: Story, seen: Box<Seen> },
}

/// A play under way.
pub(crate) struct Play {
    promises: Arc<Mutex<Vec<Promise>>>,
    /// What the acts leave to be looked at when all is over.
    viewing: JoinSet<()>,
    called: Arc<Mutex<Vec<String>>>,
    receiver: LocalServer,
    /// Where the next gateway writes down the places that it passes.
    pub(crate) passes: PathBuf,
}

/// One client's share of it.
#[derive(Clone)]
struct Client {
    web: Web,
    promises: Arc<Mutex<Vec<Promise>>>,
    hook: String,
    passes: PathBuf,
}

impl Play {
    /// Has runs at work, and kills the gateway. The next one writes down what it passes.
    pub(crate) async fn begin(cluster: &mut Cluster) -> Self {
        let called = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new()
            .route("/", post(take_call))
            .with_state(called.clone());
        let receiver = LocalServer::start(router, 0).await.expect("a receiver");
        let passes = cluster.nodes[0].home().join("passes");
        cluster.nodes[0].set_env("DEERFLOW_PASSES", Some(&passes.to_string_lossy()));
        let mut play = Self {
            promises: Arc::default(),
            viewing: JoinSet::new(),
            called,
            receiver,
            passes,
        };
        let client = play.client(&cluster.web);
        client.run("before", 30, false).await.expect("acknowledged");
        client
            .run("before-tool", 30, true)
            .await
            .expect("acknowledged");
        client.queue("before-queue").await.expect("acknowledged");
        play.viewing.spawn(client.clone().viewed("before-viewed"));
        // Time for the first steps: some are at work when the gateway dies, some wait.
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.nodes[0].kill9().await.expect("killed");
        play
    }

    fn client(&self, web: &Web) -> Client {
        let hook = format!("http://{}/", self.receiver.address());
        Client {
            web: web.clone(),
            promises: self.promises.clone(),
            hook,
            passes: self.passes.clone(),
        }
    }

    /// Does everything that clients do, all at once, and leaves a run at work.
    pub(crate) async fn go_on(mut self, web: &Web) -> Self {
        let client = self.client(web);
        let mut acts = JoinSet::new();
        self.viewing.spawn(client.clone().viewed("viewed"));
        macro_rules! act {
            ($act:expr) => {{
                let client = client.clone();
                acts.spawn(async move { $act(client).await });
            }};
        }
        act!(async |client: Client| client.recovered().await);
        act!(async |client: Client| client.run("tool", 20, true).await);
        act!(async |client: Client| client.queue("queue").await);
        act!(async |client: Client| client.displaced("interrupt").await);
        act!(async |client: Client| client.displaced("rollback").await);
        act!(async |client: Client| client.cancelled().await);
        act!(async |client: Client| client.keyed().await);
        act!(async |client: Client| client.upload().await);
        act!(async |client: Client| client.deleted().await);
        act!(async |client: Client| client.called().await);
        let _cut_short = tokio::time::timeout(ACTS_TAKE, acts.join_all()).await;
        let _gone = client.run("left", 400, false).await;
        self
    }

    /// What was promised holds, and every thread takes a new run.
    pub(crate) async fn ends_as_promised(mut self, cluster: &Cluster) {
        let web = &cluster.web;
        while let Some(viewed) = self.viewing.join_next().await {
            viewed.expect("the viewer gets all of it");
        }
        let promises = std::mem::take(&mut *self.promises.lock());
        let mut threads = Vec::new();
        for promise in &promises {
            promise.is_kept(web, &self.called).await;
            threads.extend(promise.thread());
        }
        threads.sort();
        threads.dedup();
        for thread in threads {
            web.goes_on(0, thread).await;
        }
        assert_eq!(cluster.model.rejections(), 0);
    }
}

async fn take_call(
    State(called): State<Arc<Mutex<Vec<String>>>>,
    axum::Json(call): axum::Json<Value>,
) {
    called.lock().push(text(&call["run_id"]).to_owned());
}

impl Client {
    fn promised(&self, promise: Promise) {
        self.promises.lock().push(promise);
    }

    /// What a gateway answers; `None` from one that is gone or going.
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Option<Value> {
        let (status, answer) = self.web.try_ask(0, method, path, body).await.ok()?;
        assert!(
            status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE,
            "{path}: {status} {answer}"
        );
        status.is_success().then_some(answer)
    }

    async fn thread(&self) -> Option<String> {
        Some(text(&self.ask(Method::POST, "/threads", &json!({})).await?["thread_id"]).to_owned())
    }

    async fn start(&self, thread: &str, body: &Value) -> Option<String> {
        Some(
            text(
                &self
                    .ask(Method::POST, &format!("/threads/{thread}/runs"), body)
                    .await?["run_id"],
            )
            .to_owned(),
        )
    }

    /// A run that ends well, perhaps after a call of a tool that writes.
    async fn run(&self, name: &str, words: usize, tool: bool) -> Option<()> {
        let mut story = Story::new(name, words, Duration::from_millis(25));
        if tool {
            story.prompt = format!(
                "[[tool:write_file {{\"description\": \"note\", \"path\": \"/mnt/user-data/workspace/{name}.txt\", \"content\": \"x\"}}]] {}",
                story.prompt
            );
        }
        let thread = self.thread().await?;
        let run = self.start(&thread, &body(&story.prompt)).await?;
        self.promised(Promise::Run {
            thread,
            run,
            story: Some(story),
        });
        Some(())
    }

    /// What was at work before is over.
    async fn recovered(&self) -> Option<()> {
        let at_work = |promise: &Promise| match promise {
            Promise::Run { thread, run, .. } => Some(format!("/threads/{thread}/runs/{run}/join")),
            _ => None,
        };
        let before: Vec<_> = self.promises.lock().iter().filter_map(at_work).collect();
        for path in before {
            self.ask(Method::GET, &path, &Value::Null).await?;
        }
        Some(())
    }

    /// Two runs, one behind the other.
    async fn queue(&self, name: &str) -> Option<()> {
        let thread = self.thread().await?;
        for turn in ["first", "second"] {
            let story = Story::new(&format!("{name}-{turn}"), 20, Duration::from_millis(25));
            let mut asked = body(&story.prompt);
            asked["multitask_strategy"] = json!("enqueue");
            let run = self.start(&thread, &asked).await?;
            self.promised(Promise::Run {
                thread: thread.clone(),
                run,
                story: Some(story),
            });
        }
        Some(())
    }

    /// A run in whose place another one comes.
    async fn displaced(&self, strategy: &str) -> Option<()> {
        let thread = self.thread().await?;
        let slow = Story::new(&format!("{strategy}-slow"), 400, Duration::from_millis(50));
        let run = self.start(&thread, &body(&slow.prompt)).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let story = Story::new(&format!("{strategy}-next"), 10, Duration::from_millis(25));
        let mut asked = body(&story.prompt);
        asked["multitask_strategy"] = json!(strategy);
        match self.start(&thread, &asked).await {
            Some(next) => {
                self.promised(Promise::Run {
                    thread: thread.clone(),
                    run,
                    story: None,
                });
                self.promised(Promise::Run {
                    thread,
                    run: next,
                    story: Some(story),
                });
            }
            // Nobody knows whether it was displaced; left alone it takes 20 s.
            None => self.promised(Promise::Run {
                thread,
                run,
                story: None,
            }),
        }
        Some(())
    }

    async fn cancelled(&self) -> Option<()> {
        let thread = self.thread().await?;
        let slow = Story::new("cancelled", 400, Duration::from_millis(50));
        let run = self.start(&thread, &body(&slow.prompt)).await?;
        self.promised(Promise::Run {
            thread: thread.clone(),
            run: run.clone(),
            story: None,
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.ask(
            Method::POST,
            &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
            &json!({}),
        )
        .await?;
        let shown = self
            .web
            .try_ask(
                0,
                Method::GET,
                &format!("/threads/{thread}/runs/{run}"),
                &Value::Null,
            )
            .await
            .ok()?;
        assert_eq!(shown.1["status"], "interrupted", "{shown:?}");
        Some(())
    }

    /// A run whose request is sent until it is answered.
    async fn keyed(&self) -> Option<()> {
        let thread = self.thread().await?;
        let story = Story::new("keyed", 10, Duration::from_millis(25));
        self.promised(Promise::Keyed {
            thread: thread.clone(),
            story: story.clone(),
        });
        ask_with_key(&self.web, &thread, &story).await.map(drop)
    }

    async fn upload(&self) -> Option<()> {
        let thread = self.thread().await?;
        let content = "line\n".repeat(20_000);
        let form = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"files\"; filename=\"notes.txt\"\r\n\r\n{content}\r\n--edge--\r\n"
        );
        let request = self
            .web
            .client
            .post(format!("{}/api/threads/{thread}/uploads", self.web.urls[0]));
        let answer = request
            .header("content-type", "multipart/form-data; boundary=edge")
            .body(form)
            .send()
            .await
            .ok()?;
        assert!(answer.status().is_success(), "{answer:?}");
        answer.bytes().await.ok()?;
        self.promised(Promise::File {
            thread,
            name: "notes.txt",
            content,
        });
        Some(())
    }

    async fn deleted(&self) -> Option<()> {
        let thread = self.thread().await?;
        let run = self.start(&thread, &body("then say bye")).await?;
        let over = self
            .ask(
                Method::GET,
                &format!("/threads/{thread}/runs/{run}/join"),
                &Value::Null,
            )
            .await?;
        assert!(over.is_object(), "{over}");
        self.ask(Method::DELETE, &format!("/threads/{thread}"), &json!({}))
            .await?;
        self.promised(Promise::Gone { thread });
        Some(())
    }

    async fn called(&self) -> Option<()> {
        let thread = self.thread().await?;
        let story = Story::new("called", 5, Duration::from_millis(25));
        let mut asked = body(&story.prompt);
        asked["webhook"] = json!(self.hook);
        let run = self.start(&thread, &asked).await?;
        self.promised(Promise::Called { run: run.clone() });
        self.promised(Promise::Run {
            thread: thread.clone(),
            run: run.clone(),
            story: Some(story),
        });
        self.ask(
            Method::GET,
            &format!("/threads/{thread}/runs/{run}/join"),
            &Value::Null,
        )
        .await?;
        // The last place on the way of its call. Who is gone comes to none.
        while !self.has_passed("webhook.written") {
            self.web
                .try_ask(0, Method::GET, "/health", &Value::Null)
                .await
                .ok()?;
            // The other side is a process: nothing here could be notified.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(())
    }

    /// Whether the gateway came to this place since its last start.
    fn has_passed(&self, place: &str) -> bool {
        std::fs::read_to_string(&self.passes)
            .is_ok_and(|passed| passed.lines().any(|line| line == place))
    }

    /// A run that is followed to its end, over the gateway's death.
    async fn viewed(self, name: &'static str) {
        let Some(thread) = self.thread().await else {
            return;
        };
        let story = Story::new(name, 60, Duration::from_millis(25));
        if let Some(seen) = tell(self.web.clone(), 0, thread, story.clone()).await {
            self.promised(Promise::Seen {
                story,
                seen: Box::new(seen),
            });
        }
    }
}

/// Asks for the run under a key that belongs to its thread.
async fn ask_with_key(web: &Web, thread: &str, story: &Story) -> Option<String> {
    let request = web
        .client
        .post(format!("{}/threads/{thread}/runs", web.urls[0]))
        .header("Idempotency-Key", thread);
    let answer = request.json(&body(&story.prompt)).send().await.ok()?;
    let status = answer.status();
    let told: Value = answer.json().await.ok()?;
    assert!(
        status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE,
        "{status} {told}"
    );
    told["run_id"].as_str().map(str::to_owned)
}

impl Promise {
    fn thread(&self) -> Option<&str> {
        match self {
            Self::Run { thread, .. } | Self::File { thread, .. } | Self::Keyed { thread, .. } => {
                Some(thread)
            }
            Self::Gone { .. } | Self::Called { .. } | Self::Seen { .. } => None,
        }
    }

    async fn is_kept(&self, web: &Web, called: &Mutex<Vec<String>>) {
        match self {
            Self::Run {
                thread,
                run,
                story: None,
            } => drop(web.ended(0, thread, run).await),
            Self::Run {
                thread,
                run,
                story: Some(story),
            } => {
                let shown = web
                    .ended(0, thread, run)
                    .await
                    .unwrap_or_else(|| panic!("run {run} of {story:?} is gone"));
                assert_eq!(shown["status"], "success", "{story:?}: {shown}");
                is_told_once(story, &web.talk(0, thread).await);
            }
            Self::Gone { thread } => {
                let (status, told) = web
                    .try_ask(0, Method::GET, &format!("/threads/{thread}"), &Value::Null)
                    .await
                    .expect("answer");
                assert_eq!(status, 404, "{told}");
            }
            Self::File {
                thread,
                name,
                content,
            } => {
                let url = format!(
                    "{}/api/threads/{thread}/artifacts/mnt/user-data/uploads/{name}",
                    web.urls[0]
                );
                let answer = web.client.get(url).send().await.expect("answer");
                assert_eq!(answer.status(), 200, "{name} of {thread}");
                assert_eq!(answer.text().await.expect("text"), *content);
            }
            Self::Keyed { thread, story } => {
                let first = ask_with_key(web, thread, story).await.expect("a run");
                let second = ask_with_key(web, thread, story).await.expect("a run");
                assert_eq!(first, second, "one run per key");
                assert_eq!(
                    web.ended(0, thread, &first).await.expect("a run")["status"],
                    "success"
                );
                is_told_once(story, &web.talk(0, thread).await);
            }
            Self::Called { run } => {
                let begun = Instant::now();
                while !called.lock().contains(run) {
                    assert!(
                        begun.elapsed() < CALLED_WITHIN,
                        "the webhook of {run} is not called"
                    );
                    // The other side is a process: nothing here could be notified.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            // Told that something is missing, as when the last events went with the process, a client reads the thread.
            Self::Seen { story, seen } if seen.has_a_gap() => {
                assert_eq!(
                    web.ended(0, &seen.thread, &seen.run).await.expect("a run")["status"],
                    "success",
                    "{seen:?}"
                );
                is_told_once(story, &web.talk(0, &seen.thread).await);
            }
            // Numbers begin anew with the process, where streams are in its memory.
            Self::Seen { story, seen } => seen.is_complete(story),
        }
    }
}

/// The question is there once, and so is its answer.
#[track_caller]
fn is_told_once(story: &Story, said: &[(String, String)]) {
    for wanted in [("human", &story.prompt), ("ai", &story.text)] {
        let times = said
            .iter()
            .filter(|(who, words)| who == wanted.0 && words == wanted.1)
            .count();
        assert_eq!(times, 1, "{wanted:?} in {said:?}");
    }
}
