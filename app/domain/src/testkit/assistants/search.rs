//! Contract of assistant search.

use deerflow_runtime::testkit::{at, object};
use serde_json::json;

use super::{AssistantStores, content, found, id, make, unlimited_search};
use crate::assistants::{AssistantPatch, AssistantSearch, AssistantSort};
use crate::testkit::ann;

/// Combines graph, name and metadata; limit and offset do not change the count.
pub async fn assistant_search_combines_filters_and_count_agrees(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    for (n, graph, name) in [
        (1, "g", "Alpha"),
        (2, "g", "alphabet"),
        (3, "h", "ALPHA"),
        (4, "g", "100%_sure"),
    ] {
        make(
            &stores,
            n,
            content(graph, name, json!({"n": n, "of": {"kind": ["x", n]}})),
        )
        .await;
    }
    let by = |search: AssistantSearch| AssistantSearch {
        ascending: true,
        ..search
    };
    assert_eq!(found(&stores, unlimited_search()).await, [4, 3, 2, 1]);
    let others = AssistantSearch {
        except: vec![id(3), id(9)],
        ..unlimited_search()
    };
    assert_eq!(
        (
            found(&stores, others.clone()).await,
            stores.assistants.count(&others, &ann()).await
        ),
        (vec![4, 2, 1], Ok(3))
    );
    let named = AssistantSearch {
        name: Some("alpha".to_owned()),
        ..others
    };
    assert_eq!(
        (
            found(&stores, named.clone()).await,
            stores.assistants.count(&named, &ann()).await
        ),
        (vec![2, 1], Ok(2))
    );
    let named = by(AssistantSearch {
        name: Some("alpha".to_owned()),
        ..unlimited_search()
    });
    assert_eq!(found(&stores, named.clone()).await, [1, 2, 3]);
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                graph: Some("g".to_owned()),
                ..named.clone()
            }
        )
        .await,
        [1, 2]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                name: Some("%".to_owned()),
                ..unlimited_search()
            }
        )
        .await,
        [4]
    );
    assert_eq!(
        found(
            &stores,
            by(AssistantSearch {
                metadata: object(json!({"of": {"kind": ["x"]}})),
                ..unlimited_search()
            })
        )
        .await,
        [1, 2, 3, 4]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                metadata: object(json!({"of": {"kind": [3]}})),
                ..unlimited_search()
            }
        )
        .await,
        [3]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                metadata: object(json!({"n": "1"})),
                ..unlimited_search()
            }
        )
        .await,
        [0; 0]
    );
    let page = AssistantSearch {
        limit: 1,
        offset: 1,
        ..named
    };
    assert_eq!(found(&stores, page.clone()).await, [2]);
    assert_eq!(stores.assistants.count(&page, &ann()).await, Ok(3));
    assert_eq!(
        stores
            .assistants
            .count(
                &AssistantSearch {
                    graph: Some("h".to_owned()),
                    ..unlimited_search()
                },
                &ann()
            )
            .await,
        Ok(1)
    );
}

/// Text is ordered by bytes, ties by id.
pub async fn assistant_search_applies_requested_sort(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    for (n, graph, name) in [
        (1, "b", "zeta"),
        (2, "a", "Zeta"),
        (3, "b", "éta"),
        (4, "a", "alpha"),
    ] {
        make(&stores, n, content(graph, name, json!({}))).await;
    }
    stores
        .assistants
        .patch(id(2), AssistantPatch::default(), &ann(), at(50))
        .await
        .expect("written");
    for (sort_by, ascending) in [
        (AssistantSort::CreatedAt, [1, 2, 3, 4]),
        (AssistantSort::UpdatedAt, [1, 3, 4, 2]),
        (AssistantSort::Name, [2, 4, 1, 3]),
        (AssistantSort::Graph, [2, 4, 1, 3]),
        (AssistantSort::Id, [1, 2, 3, 4]),
    ] {
        let up = AssistantSearch {
            sort_by,
            ascending: true,
            ..unlimited_search()
        };
        assert_eq!(found(&stores, up.clone()).await, ascending, "{sort_by:?}");
        let mut descending = ascending;
        descending.reverse();
        assert_eq!(
            found(
                &stores,
                AssistantSearch {
                    ascending: false,
                    ..up
                }
            )
            .await,
            descending,
            "{sort_by:?}"
        );
    }
}
