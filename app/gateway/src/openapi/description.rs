//! Description of one operation, as a part of a document.

use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, Parameter, Paths};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{
    Components, Content, ContentBuilder, HttpMethod, OpenApi, RefOr, Response, ResponseBuilder,
};

use crate::responses::documented::Error;
use crate::schema::{collect, reference};

pub(super) const JSON: &str = "application/json";

/// Description of an operation, which is built together with the document: most processes never
/// serve one.
pub(crate) struct Described {
    pub(super) path: &'static str,
    method: HttpMethod,
    id: &'static str,
    summary: &'static str,
    parts: Vec<Part>,
}

/// Adds a part to a description.
type Part = Box<dyn Fn(&mut Description) + Send + Sync>;

impl Described {
    pub(super) fn new(
        path: &'static str,
        method: HttpMethod,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            path,
            method,
            id,
            summary,
            parts: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, part: impl Fn(&mut Description) + Send + Sync + 'static) {
        self.parts.push(Box::new(part));
    }

    /// Adds the operation to a document.
    pub(super) fn add_to(&self, document: &mut OpenApi) {
        let mut description = Description::new(self.id, self.summary);
        for part in &self.parts {
            part(&mut description);
        }
        description.add_to(document, self.path, self.method.clone());
    }
}

/// Description under construction.
pub(super) struct Description {
    builder: OperationBuilder,
    /// Error statuses with the standard error body.
    refusals: Vec<u16>,
    /// Schemas that the operation refers to, by name.
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Description {
    /// Begins a description with the statuses of the request guard.
    fn new(id: &str, summary: &str) -> Self {
        let builder = OperationBuilder::new()
            .operation_id(Some(id))
            .summary(Some(summary));
        // Errors of the request guard: missing or invalid key, untrusted page, too many invalid
        // keys.
        Self {
            builder,
            refusals: vec![401, 403, 429],
            schemas: Vec::new(),
        }
    }

    pub(super) fn tag(&mut self, tag: &str) {
        self.change(|builder| builder.tag(tag));
    }

    pub(super) fn parameter(&mut self, parameter: Parameter) {
        self.change(|builder| builder.parameter(parameter));
    }

    pub(super) fn request_body(&mut self, body: RequestBody) {
        self.change(|builder| builder.request_body(Some(body)));
    }

    pub(super) fn response(&mut self, status: u16, response: Response) {
        self.change(|builder| builder.response(status.to_string(), response));
    }

    /// Adds error statuses with the standard error body.
    pub(super) fn fails_with(&mut self, statuses: &[u16]) {
        self.refusals.extend(statuses);
    }

    /// Adds an error status with a body of its own.
    pub(super) fn fails_as(&mut self, status: u16, response: Response) {
        self.response(status, response);
        self.refusals.retain(|refusal| *refusal != status);
    }

    /// Returns content of type `T`, whose schema it adds.
    pub(super) fn content<T: ToSchema>(&mut self) -> Content {
        collect::<T>(&mut self.schemas);
        content_of(reference::<T>())
    }

    fn change(&mut self, change: impl FnOnce(OperationBuilder) -> OperationBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    /// Adds the operation and its schemas to a document.
    fn add_to(mut self, document: &mut OpenApi, path: &str, method: HttpMethod) {
        self.refusals.sort_unstable();
        self.refusals.dedup();
        for status in std::mem::take(&mut self.refusals) {
            self.response(status, error_response(status).build());
        }
        let internal = error_response(500).build();
        self.change(|builder| builder.response("5XX", internal));
        collect::<Error>(&mut self.schemas);
        let mut paths = Paths::new();
        paths.add_path_operation(path, vec![method], self.builder.build());
        for (path, item) in paths.paths {
            match document.paths.paths.get_mut(&path) {
                Some(existing) => existing.merge_operations(item),
                None => {
                    document.paths.paths.insert(path, item);
                }
            }
        }
        let components = document.components.get_or_insert_with(Components::new);
        components.schemas.extend(self.schemas);
    }
}

pub(super) fn content_of(schema: RefOr<Schema>) -> Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

/// Begins a response with the standard error body.
pub(super) fn error_response(status: u16) -> ResponseBuilder {
    ResponseBuilder::new()
        .description(error_description(status))
        .content(JSON, content_of(reference::<Error>()))
}

pub(super) fn error_description(status: u16) -> &'static str {
    match status {
        400 => "The request is refused.",
        401 => "Missing or invalid session or API key.",
        403 => "Not allowed.",
        404 => "It does not exist or belongs to another user.",
        408 => "The body did not arrive in time.",
        409 => "Conflict with the current state.",
        412 => "The resource changed since it was read.",
        413 => "The body is too large.",
        415 => "The body is compressed, or its type is not supported.",
        422 => "The request does not match this description.",
        429 => "Too many requests.",
        501 => "This server does not have the feature.",
        _ => "Internal error, or a required component does not respond.",
    }
}
