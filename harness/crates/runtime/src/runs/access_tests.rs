//! Tests of reading and deleting runs.

use crate::ports::RunListQuery;
use crate::runs::*;
use crate::test_support::*;
use deerflow_core::actor_context::{ActorContext, scope};

#[tokio::test]
async fn runs_of_other_users_are_not_found() {
    let facade = facade();
    let record = as_user(facade.create_and_wait(spec("finish")))
        .await
        .unwrap()
        .0;
    scope(ActorContext::user("bob"), async {
        assert!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            facade
                .list_runs(
                    &thread(),
                    &RunListQuery {
                        limit: 10,
                        ..RunListQuery::default()
                    }
                )
                .await
                .unwrap()
                .is_empty()
        );
        assert!(matches!(
            facade.join_wait(None, &record.run_id).await,
            Err(RunError::NotFound(_))
        ));
        assert!(matches!(
            facade.create_background(spec("finish")).await,
            Err(RunError::Admit(store::AdmitError::ThreadNotFound(_)))
        ));
    })
    .await;
}

#[tokio::test]
async fn delete_removes_ended_run_but_rejects_active_run() {
    as_user(async {
        let facade = facade();
        let (record, _) = facade.create_and_wait(spec("finish")).await.unwrap();
        facade
            .delete_run(Some(&thread()), &record.run_id)
            .await
            .unwrap();
        assert!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            facade
                .runtime()
                .ports()
                .checkpointer
                .get(&thread(), None)
                .await
                .unwrap()
                .is_none()
        );
        let active = facade.create_background(spec("hang")).await.unwrap();
        assert!(matches!(
            facade.delete_run(None, &active.run_id).await,
            Err(RunError::StillActive(_))
        ));
    })
    .await;
}
