//! Tests of lifetimes and embeddings, with a test clock and a test embedder.

use async_trait::async_trait;
use deerflow_core::clock::ManualClock;
use deerflow_core::model_error::ModelErrorKind;
use deerflow_runtime::testkit::at;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::items::InMemoryItemStore;

/// Counts the letters a, b and c; records its inputs.
#[derive(Debug, Default)]
struct LetterEmbedder {
    asked: Mutex<Vec<String>>,
    broken: bool,
}

#[async_trait]
impl Embedder for LetterEmbedder {
    fn dims(&self) -> usize {
        3
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        if self.broken {
            let (model, message) = ("letters".to_owned(), "broken".to_owned());
            return Err(ModelError {
                model,
                kind: ModelErrorKind::Busy,
                message,
                status: None,
                retry_after: None,
            });
        }
        self.asked.lock().extend(texts.iter().cloned());
        let count =
            |text: &String, letter| text.chars().filter(|found| *found == letter).count() as f32;
        Ok(texts
            .iter()
            .map(|text| ['a', 'b', 'c'].map(|letter| count(text, letter)).to_vec())
            .collect())
    }
}

struct Rig {
    items: Arc<ItemService>,
    letters: Arc<LetterEmbedder>,
    clock: ManualClock,
}

fn rig(ttl: TtlPolicy, broken: bool) -> Rig {
    let (clock, letters) = (
        ManualClock::starting_at(at(0)),
        Arc::new(LetterEmbedder {
            broken,
            ..LetterEmbedder::default()
        }),
    );
    let index = EmbeddingIndex {
        embedder: letters.clone(),
        fields: vec![FieldPath::parse("text")],
    };
    let items = ItemService::new(
        Arc::new(InMemoryItemStore::default()),
        Some(index),
        ttl,
        Arc::new(clock.clone()),
    );
    Rig {
        items: Arc::new(items),
        letters,
        clock,
    }
}

fn item(key: &str, value: Value) -> PutRequest {
    PutRequest {
        namespace: Namespace::new(vec!["n".to_owned()]).unwrap(),
        key: key.to_owned(),
        value: value.as_object().cloned().unwrap(),
        ttl: None,
        indexing: Indexing::AsConfigured,
    }
}

async fn about(rig: &Rig, query: &str) -> SearchRequest {
    let query = Some(query.to_owned());
    SearchRequest {
        prefix: Namespace::default(),
        filter: Filter::default(),
        nearest: rig.items.embed_query(query).await.unwrap(),
        limit: 10,
        offset: 0,
        refresh: None,
    }
}

async fn found(rig: &Rig, request: SearchRequest) -> Vec<(String, Option<f64>)> {
    rig.items
        .search("ann", request)
        .await
        .unwrap()
        .into_iter()
        .map(|hit| (hit.item.key, hit.score))
        .collect()
}

#[tokio::test]
async fn most_similar_comes_first_and_unindexed_is_not_found() {
    let rig = rig(TtlPolicy::default(), false);
    for (key, text) in [("1", "aaa"), ("2", "ab"), ("3", "ccc")] {
        rig.items
            .put("ann", item(key, json!({"text": text, "other": "a"})))
            .await
            .unwrap();
    }
    rig.items
        .put(
            "ann",
            PutRequest {
                indexing: Indexing::Off,
                ..item("off", json!({"text": "a"}))
            },
        )
        .await
        .unwrap();
    rig.items
        .put("ann", item("none", json!({"text": null})))
        .await
        .unwrap();
    let fields = Indexing::Fields(vec!["other".to_owned()]);
    rig.items
        .put(
            "ann",
            PutRequest {
                indexing: fields,
                ..item("other", json!({"text": "c", "other": "abb"}))
            },
        )
        .await
        .unwrap();
    assert_eq!(*rig.letters.asked.lock(), ["aaa", "ab", "ccc", "abb"]);
    let nearest = found(&rig, about(&rig, "a").await).await;
    let keys: Vec<&str> = nearest.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["1", "2", "other", "3"]);
    assert_eq!((nearest[0].1, nearest[3].1), (Some(1.0), Some(0.0)));
    assert_eq!(found(&rig, about(&rig, " ").await).await.len(), 6);
}

#[tokio::test]
async fn failed_embedding_writes_nothing() {
    let rig = rig(TtlPolicy::default(), true);
    assert!(matches!(
        rig.items.put("ann", item("1", json!({"text": "a"}))).await,
        Err(ItemError::Embedding(_))
    ));
    let many = Indexing::Fields(vec!["list[*]".to_owned()]);
    let long = PutRequest {
        indexing: many,
        ..item("2", json!({"list": vec!["a"; MAX_TEXTS + 1]}))
    };
    assert_eq!(
        rig.items.put("ann", long).await,
        Err(ItemError::TooManyTexts(MAX_TEXTS + 1))
    );
    assert_eq!(found(&rig, about(&rig, " ").await).await, []);
}

#[tokio::test]
async fn default_ttl_applies_and_reads_renew_it() {
    let minutes = |minutes| TimeDelta::minutes(minutes);
    let rig = rig(
        TtlPolicy {
            default: Some(minutes(10)),
            ..TtlPolicy::default()
        },
        false,
    );
    rig.items
        .put("ann", item("policy", json!({})))
        .await
        .unwrap();
    rig.items
        .put(
            "ann",
            PutRequest {
                ttl: Some(minutes(30)),
                ..item("own", json!({}))
            },
        )
        .await
        .unwrap();
    let here = Namespace::new(vec!["n".to_owned()]).unwrap();
    let get = async |key, refresh| {
        rig.items
            .get("ann", &here, key, refresh)
            .await
            .unwrap()
            .is_some()
    };
    rig.clock.advance(minutes(9));
    assert!(get("policy", None).await);
    rig.clock.advance(minutes(9));
    assert!(get("policy", Some(false)).await);
    rig.clock.advance(minutes(2));
    assert!(!get("policy", None).await && get("own", None).await);
}

#[tokio::test(start_paused = true)]
async fn expired_items_are_swept_at_intervals() {
    let rig = rig(
        TtlPolicy {
            default: Some(TimeDelta::minutes(1)),
            ..TtlPolicy::default()
        },
        false,
    );
    rig.items.put("ann", item("1", json!({}))).await.unwrap();
    rig.clock.advance(TimeDelta::minutes(2));
    let stop = CancellationToken::new();
    let sweeping = rig.items.clone().sweep_loop(stop.clone());
    let check = async {
        tokio::time::sleep(Duration::from_secs(3601)).await;
        stop.cancel();
    };
    tokio::join!(sweeping, check);
    assert_eq!(rig.items.store.sweep(rig.clock.now()).await, Ok(0));
}
