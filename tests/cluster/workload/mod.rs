//! Mixed workload of clients on a gateway that may crash at any moment, and checks of what was
//! acknowledged.

mod guarantee;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use deerflow_tests::local_server::LocalServer;
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::guarantee::{Guarantee, ask_with_key};
use crate::follower::start_and_follow;
use crate::rig::{Cluster, Gateways, ScriptedReply, TIMEOUT, body, text};

/// Maximum time for all actions together; a gateway that is down cuts them short.
const ACTIONS_TIMEOUT: Duration = TIMEOUT;

/// Workload in progress.
pub(crate) struct Workload {
    guarantees: Arc<Mutex<Vec<Guarantee>>>,
    /// Viewers that are checked at the end.
    viewing: JoinSet<()>,
    called: Arc<Mutex<Vec<String>>>,
    receiver: LocalServer,
    /// File in which the next gateway records the fail points that it passes.
    pub(crate) passes: PathBuf,
}

/// One client of the workload.
#[derive(Clone)]
struct Client {
    gateways: Gateways,
    guarantees: Arc<Mutex<Vec<Guarantee>>>,
    hook: String,
    passes: PathBuf,
}

impl Workload {
    /// Starts runs and kills the gateway. The next gateway records the fail points that it passes.
    pub(crate) async fn begin(cluster: &mut Cluster) -> Self {
        let called = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new()
            .route("/", post(take_call))
            .with_state(called.clone());
        let receiver = LocalServer::start(router, 0).await.expect("a receiver");
        let passes = cluster.nodes[0].home().join("passes");
        cluster.nodes[0].set_env("DEERFLOW_PASSES", Some(&passes.to_string_lossy()));
        let mut workload = Self {
            guarantees: Arc::default(),
            viewing: JoinSet::new(),
            called,
            receiver,
            passes,
        };
        let client = workload.client(&cluster.gateways);
        client.run("before", 30, false).await.expect("acknowledged");
        client
            .run("before-tool", 30, true)
            .await
            .expect("acknowledged");
        client.queue("before-queue").await.expect("acknowledged");
        workload
            .viewing
            .spawn(client.clone().viewed("before-viewed"));
        // Time for the first steps: when the gateway dies, some runs are active and some are
        // queued.
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.nodes[0].kill9().await.expect("killed");
        workload
    }

    fn client(&self, gateways: &Gateways) -> Client {
        let hook = format!("http://{}/", self.receiver.address());
        Client {
            gateways: gateways.clone(),
            guarantees: self.guarantees.clone(),
            hook,
            passes: self.passes.clone(),
        }
    }

    /// Performs all client actions concurrently and leaves one run active.
    pub(crate) async fn run_all(mut self, gateways: &Gateways) -> Self {
        let client = self.client(gateways);
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
        let _cut_short = tokio::time::timeout(ACTIONS_TIMEOUT, acts.join_all()).await;
        let _gone = client.run("left", 400, false).await;
        self
    }

    /// Asserts that all guarantees hold and every thread accepts a new run.
    pub(crate) async fn assert_guarantees(mut self, cluster: &Cluster) {
        let gateways = &cluster.gateways;
        while let Some(viewed) = self.viewing.join_next().await {
            viewed.expect("the viewer receives the whole stream");
        }
        let guarantees = std::mem::take(&mut *self.guarantees.lock());
        let mut threads = Vec::new();
        for guarantee in &guarantees {
            guarantee.assert_holds(gateways, &self.called).await;
            threads.extend(guarantee.thread());
        }
        threads.sort();
        threads.dedup();
        for thread in threads {
            gateways.accepts_new_run(0, thread).await;
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
    fn record_guarantee(&self, guarantee: Guarantee) {
        self.guarantees.lock().push(guarantee);
    }

    /// Returns a gateway's response; `None` if the gateway is down or stopping.
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Option<Value> {
        let (status, answer) = self.gateways.try_ask(0, method, path, body).await.ok()?;
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

    /// Starts a run that succeeds, optionally after a call of a tool that writes.
    async fn run(&self, name: &str, words: usize, tool: bool) -> Option<()> {
        let mut reply = ScriptedReply::new(name, words, Duration::from_millis(25));
        if tool {
            reply.prompt = format!(
                "[[tool:write_file {{\"description\": \"note\", \"path\": \"/mnt/user-data/workspace/{name}.txt\", \"content\": \"x\"}}]] {}",
                reply.prompt
            );
        }
        let thread = self.thread().await?;
        let run = self.start(&thread, &body(&reply.prompt)).await?;
        self.record_guarantee(Guarantee::Run {
            thread,
            run,
            reply: Some(reply),
        });
        Some(())
    }

    /// Waits for the runs that were active before the crash.
    async fn recovered(&self) -> Option<()> {
        let at_work = |guarantee: &Guarantee| match guarantee {
            Guarantee::Run { thread, run, .. } => {
                Some(format!("/threads/{thread}/runs/{run}/join"))
            }
            _ => None,
        };
        let before: Vec<_> = self.guarantees.lock().iter().filter_map(at_work).collect();
        for path in before {
            self.ask(Method::GET, &path, &Value::Null).await?;
        }
        Some(())
    }

    /// Starts two runs, the second queued after the first.
    async fn queue(&self, name: &str) -> Option<()> {
        let thread = self.thread().await?;
        for turn in ["first", "second"] {
            let reply =
                ScriptedReply::new(&format!("{name}-{turn}"), 20, Duration::from_millis(25));
            let mut request = body(&reply.prompt);
            request["multitask_strategy"] = json!("enqueue");
            let run = self.start(&thread, &request).await?;
            self.record_guarantee(Guarantee::Run {
                thread: thread.clone(),
                run,
                reply: Some(reply),
            });
        }
        Some(())
    }

    /// Starts a run that another run then interrupts or rolls back.
    async fn displaced(&self, strategy: &str) -> Option<()> {
        let thread = self.thread().await?;
        let slow = ScriptedReply::new(&format!("{strategy}-slow"), 400, Duration::from_millis(50));
        let run = self.start(&thread, &body(&slow.prompt)).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let reply = ScriptedReply::new(&format!("{strategy}-next"), 10, Duration::from_millis(25));
        let mut request = body(&reply.prompt);
        request["multitask_strategy"] = json!(strategy);
        match self.start(&thread, &request).await {
            Some(next) => {
                self.record_guarantee(Guarantee::Run {
                    thread: thread.clone(),
                    run,
                    reply: None,
                });
                self.record_guarantee(Guarantee::Run {
                    thread,
                    run: next,
                    reply: Some(reply),
                });
            }
            // It is unknown whether the run was displaced; otherwise it takes 20 s.
            None => self.record_guarantee(Guarantee::Run {
                thread,
                run,
                reply: None,
            }),
        }
        Some(())
    }

    async fn cancelled(&self) -> Option<()> {
        let thread = self.thread().await?;
        let slow = ScriptedReply::new("cancelled", 400, Duration::from_millis(50));
        let run = self.start(&thread, &body(&slow.prompt)).await?;
        self.record_guarantee(Guarantee::Run {
            thread: thread.clone(),
            run: run.clone(),
            reply: None,
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.ask(
            Method::POST,
            &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
            &json!({}),
        )
        .await?;
        let stored = self
            .gateways
            .try_ask(
                0,
                Method::GET,
                &format!("/threads/{thread}/runs/{run}"),
                &Value::Null,
            )
            .await
            .ok()?;
        assert_eq!(stored.1["status"], "interrupted", "{stored:?}");
        Some(())
    }

    /// Sends the request of a run until it is answered.
    async fn keyed(&self) -> Option<()> {
        let thread = self.thread().await?;
        let reply = ScriptedReply::new("keyed", 10, Duration::from_millis(25));
        self.record_guarantee(Guarantee::Keyed {
            thread: thread.clone(),
            reply: reply.clone(),
        });
        ask_with_key(&self.gateways, &thread, &reply)
            .await
            .map(drop)
    }

    async fn upload(&self) -> Option<()> {
        let thread = self.thread().await?;
        let content = "line\n".repeat(20_000);
        let form = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"files\"; filename=\"notes.txt\"\r\n\r\n{content}\r\n--edge--\r\n"
        );
        let request = self.gateways.client.post(format!(
            "{}/api/threads/{thread}/uploads",
            self.gateways.urls[0]
        ));
        let answer = request
            .header("content-type", "multipart/form-data; boundary=edge")
            .body(form)
            .send()
            .await
            .ok()?;
        assert!(answer.status().is_success(), "{answer:?}");
        answer.bytes().await.ok()?;
        self.record_guarantee(Guarantee::File {
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
        self.record_guarantee(Guarantee::Gone { thread });
        Some(())
    }

    async fn called(&self) -> Option<()> {
        let thread = self.thread().await?;
        let reply = ScriptedReply::new("called", 5, Duration::from_millis(25));
        let mut request = body(&reply.prompt);
        request["webhook"] = json!(self.hook);
        let run = self.start(&thread, &request).await?;
        self.record_guarantee(Guarantee::Called { run: run.clone() });
        self.record_guarantee(Guarantee::Run {
            thread: thread.clone(),
            run: run.clone(),
            reply: Some(reply),
        });
        self.ask(
            Method::GET,
            &format!("/threads/{thread}/runs/{run}/join"),
            &Value::Null,
        )
        .await?;
        // The last fail point of a webhook call. A client that is gone reaches none.
        while !self.has_passed("webhook.written") {
            self.gateways
                .try_ask(0, Method::GET, "/health", &Value::Null)
                .await
                .ok()?;
            // The other side is a process and cannot notify this one.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(())
    }

    /// Reports whether the gateway passed this fail point since its last start.
    fn has_passed(&self, point: &str) -> bool {
        std::fs::read_to_string(&self.passes)
            .is_ok_and(|passed| passed.lines().any(|line| line == point))
    }

    /// Follows a run to its end, across the crash of the gateway.
    async fn viewed(self, name: &'static str) {
        let Some(thread) = self.thread().await else {
            return;
        };
        let reply = ScriptedReply::new(name, 60, Duration::from_millis(25));
        if let Some(observed) =
            start_and_follow(self.gateways.clone(), 0, thread, reply.clone()).await
        {
            self.record_guarantee(Guarantee::ObservedStream {
                reply,
                observed: Box::new(observed),
            });
        }
    }
}
