//! Containers in a cluster, created by the provisioner: a service that starts one pod per id.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ContainerError;
use super::http_service::{Call, HttpService};
use super::sandbox_host::{ContainerEndpoint, ContainerSpec, SandboxHost, SandboxId};
use crate::sandbox::command::Mount;

/// Options of the provisioner.
#[derive(Debug, Clone)]
pub struct ProvisionerOptions {
    /// Address of the provisioner.
    pub url: Url,
    /// API key of the provisioner.
    pub key: Option<SecretString>,
    /// Folders of the cluster's machines that every pod mounts. The provisioner itself mounts those
    /// of threads and skills.
    pub mounts: Vec<Mount>,
}

/// Creates pods through a provisioner.
#[derive(Debug)]
pub(super) struct ProvisionerSandboxHost {
    service: HttpService,
    mounts: Vec<Mount>,
}

#[derive(Debug, Deserialize)]
struct Pod {
    sandbox_url: String,
    status: String,
}

impl ProvisionerSandboxHost {
    pub(super) fn new(options: ProvisionerOptions) -> Result<Self, reqwest::Error> {
        let service = HttpService::at("the provisioner", &options.url)?.with_key(options.key);
        Ok(Self {
            service,
            mounts: options.mounts,
        })
    }
}

impl Pod {
    fn endpoint(&self) -> Result<ContainerEndpoint, ContainerError> {
        let unreadable = |why: String| ContainerError::Unreadable {
            peer: "the provisioner".to_owned(),
            why,
        };
        let url = Url::parse(&self.sandbox_url)
            .map_err(|error| unreadable(format!("sandbox_url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unreadable(
                "sandbox_url is not an http or https address".to_owned(),
            ));
        }
        Ok(ContainerEndpoint {
            url,
            spec_digest: None,
        })
    }
}

#[async_trait]
impl SandboxHost for ProvisionerSandboxHost {
    fn spec_digest(&self, _spec: &ContainerSpec) -> Option<String> {
        None
    }

    /// Pods of other servers are indistinguishable, so none is treated as orphaned.
    async fn list_orphans(&self) -> Result<Vec<(SandboxId, ContainerEndpoint)>, ContainerError> {
        Ok(Vec::new())
    }

    async fn find(
        &self,
        spec: &ContainerSpec,
    ) -> Result<Option<ContainerEndpoint>, ContainerError> {
        let response = self
            .service
            .call(Call::get(&format!("/api/sandboxes/{}", spec.id)))
            .await?;
        if response.status == 404 {
            return Ok(None);
        }
        let pod: Pod = response.read()?;
        if pod.status == "Running" {
            pod.endpoint().map(Some)
        } else {
            Ok(None)
        }
    }

    async fn launch(&self, spec: &ContainerSpec) -> Result<ContainerEndpoint, ContainerError> {
        let mount = |mount: &Mount| json!({"host_path": mount.host, "container_path": mount.inside, "read_only": mount.read_only});
        let mut body = json!({
            "sandbox_id": spec.id.as_str(),
            "thread_id": spec.thread,
            "user_id": spec.user,
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
        pod.endpoint()
    }

    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError> {
        let response = self
            .service
            .call(Call::delete(&format!("/api/sandboxes/{id}")).within(Duration::from_secs(15)))
            .await?;
        if response.status == 404 {
            Ok(())
        } else {
            response.check_status()
        }
    }

    async fn version(&self) -> Result<String, ContainerError> {
        let _health: Value = self.service.call(Call::get("/health")).await?.read()?;
        Ok("the provisioner".to_owned())
    }
}
