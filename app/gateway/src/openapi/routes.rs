//! Routes together with the descriptions of their operations.

use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;

use super::description::Described;
use crate::state::GatewayState;

/// An operation with its handler.
pub(crate) struct Route {
    pub(super) operation: Described,
    pub(super) handler: MethodRouter<Arc<GatewayState>>,
}

/// Routes with their descriptions.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Arc<GatewayState>>,
    operations: Vec<Described>,
}

/// Descriptions of a router's operations, in the order of its routes.
pub(crate) struct Descriptions(Vec<Described>);

impl Routes {
    /// Adds an operation.
    pub(crate) fn routes(mut self, route: Route) -> Self {
        self.router = self.router.route(route.operation.path, route.handler);
        self.operations.push(route.operation);
        self
    }

    /// Adds the description of an operation.
    pub(crate) fn described(mut self, operation: Described) -> Self {
        self.operations.push(operation);
        self
    }

    /// Adds the operations of `other`.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    /// Returns the router and the descriptions.
    pub(crate) fn split(self) -> (Router<Arc<GatewayState>>, Descriptions) {
        (self.router, Descriptions(self.operations))
    }
}

impl Descriptions {
    /// Builds the description of all operations, which is large: megabytes.
    pub(super) fn build(&self) -> OpenApi {
        let mut document = OpenApi::default();
        for operation in &self.0 {
            operation.add_to(&mut document);
        }
        document
    }
}
