//! Containers of a cluster, made by the provisioner: a service that starts a pod for each id.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ContainerError;
use super::peer::{Call, Peer};
use super::place::{Order, Place, SandboxHost, SandboxId};
use crate::sandbox::command::Mount;

/// Where the provisioner is.
#[derive(Debug, Clone)]
pub struct ProvisionerOptions {
    /// Its address.
    pub url: Url,
    /// Its key.
    pub key: Option<SecretString>,
    /// Folders of the cluster's machines that every pod sees. Those of threads and skills it knows itself.
    pub mounts: Vec<Mount>,
}

/// Has pods made by a provisioner.
#[derive(Debug)]
pub(super) struct ProvisionerSandboxHost {
    service: Peer,
    mounts: Vec<Mount>,
}

#[derive(Debug, Deserialize)]
struct Pod {
    sandbox_url: String,
    status: String,
}

impl ProvisionerSandboxHost {
    pub(super) fn new(options: ProvisionerOptions) -> Result<Self, reqwest::Error> {
        let service = Peer::at("the provisioner", &options.url)?.with_key(options.key);
        Ok(Self {
            service,
            mounts: options.mounts,
        })
    }
}

impl Pod {
    fn place(&self) -> Result<Place, ContainerError> {
        let unreadable = |why: String| ContainerError::Unreadable {
            peer: "the provisioner".to_owned(),
            why,
        };
        let url = Url::parse(&self.sandbox_url)
            .map_err(|error| unreadable(format!("sandbox_url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unreadable(
                "sandbox_url is no address of a web server".to_owned(),
            ));
        }
        Ok(Place { url, made_of: None })
    }
}

#[async_trait]
impl SandboxHost for ProvisionerSandboxHost {
    fn recipe(&self, _order: &Order) -> Option<String> {
        None
    }

    /// Other servers have pods there too, so none is taken for left behind.
    async fn left_behind(&self) -> Result<Vec<(SandboxId, Place)>, ContainerError> {
        Ok(Vec::new())
    }

    async fn find(&self, order: &Order) -> Result<Option<Place>, ContainerError> {
        let answer = self
            .service
            .call(Call::get(&format!("/api/sandboxes/{}", order.id)))
            .await?;
        if answer.status == 404 {
            return Ok(None);
        }
        let pod: Pod = answer.read()?;
        if pod.status == "Running" {
            pod.place().map(Some)
        } else {
            Ok(None)
        }
    }

    async fn make(&self, order: &Order) -> Result<Place, ContainerError> {
        let mount = |mount: &Mount| json!({"host_path": mount.host, "container_path": mount.inside, "read_only": mount.read_only});
        let mut body = json!({
            "sandbox_id": order.id.as_str(),
            "thread_id": order.thread,
            "user_id": order.user,
            "include_legacy_skills": false,
        });
        if !self.mounts.is_empty() {
            body["extra_mounts"] = self.mounts.iter().map(mount).collect();
        }
        let pod: Pod = self
            .service
            .call(Call::post("/api/sandboxes", body))
            .await?
            .read()?;
        pod.place()
    }

    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError> {
        let answer = self
            .service
            .call(Call::delete(&format!("/api/sandboxes/{id}")).within(Duration::from_secs(15)))
            .await?;
        if answer.status == 404 {
            Ok(())
        } else {
            answer.done()
        }
    }

    async fn look(&self) -> Result<String, ContainerError> {
        let _health: Value = self.service.call(Call::get("/health")).await?.read()?;
        Ok("the provisioner".to_owned())
    }
}
