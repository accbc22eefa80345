//! Gateway, fakes of the platforms and a model whose answers a case decides.

mod files;
mod gateway;
mod messages;
mod model;
mod platforms;
mod talks;

pub(crate) use self::gateway::{Gateway, Setup};
pub(crate) use self::model::{Model, Reply, asked};
pub(crate) use self::platforms::{PlatformName, Platforms, SECRETS};
pub(crate) use self::talks::{Talks, end_of};
