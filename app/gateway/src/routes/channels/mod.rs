//! `/channels`: bots on chat platforms, and the accounts that users connect.

mod connect;
mod connections;
mod credentials;
mod provider;
mod providers;
mod runtime;

pub(crate) use connect::connect;
pub(crate) use connections::{connections, disconnect};
pub(crate) use credentials::{configure, forget};
pub(crate) use providers::providers;
pub(crate) use runtime::{add_slash, restart, status};

use deerflow_domain::channels::{ChannelRuntimeError, ChannelStoreError};

use crate::error::ApiError;

impl From<ChannelStoreError> for ApiError {
    fn from(error: ChannelStoreError) -> Self {
        match error {
            ChannelStoreError::Store(error) => error.into(),
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<ChannelRuntimeError> for ApiError {
    fn from(error: ChannelRuntimeError) -> Self {
        match error {
            ChannelRuntimeError::Unknown(_) => {
                Self::NotFound("Unknown channel provider".to_owned())
            }
            ChannelRuntimeError::Refused(reason) => Self::BadRequest(reason),
            ChannelRuntimeError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}
