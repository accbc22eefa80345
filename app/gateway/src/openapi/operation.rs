//! Builder of one operation: its description together with its handler.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, ParameterIn, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{ContentBuilder, HttpMethod, RefOr, Required, ResponseBuilder};
use utoipa_axum::router::UtoipaMethodRouter;

use super::schema::{parameter, text};
use crate::extract::IDEMPOTENCY_HEADER;
use crate::responses::documented::{Error, StreamEvent};
use crate::schema::{collect, reference};
use crate::state::GatewayState;

const JSON: &str = "application/json";

/// An operation for the router and the document.
pub(crate) struct Operation {
    path: &'static str,
    method: HttpMethod,
    filter: MethodFilter,
    builder: OperationBuilder,
    /// Error statuses with the standard error body.
    refusals: Vec<u16>,
    /// Schemas that the operation refers to, by name.
    schemas: Vec<(String, RefOr<Schema>)>,
}

/// Begins a `GET` operation.
pub(crate) fn get(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Get, MethodFilter::GET, path, id, summary)
}

/// Begins a `POST` operation.
pub(crate) fn post(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Post, MethodFilter::POST, path, id, summary)
}

/// Begins a `PUT` operation.
pub(crate) fn put(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Put, MethodFilter::PUT, path, id, summary)
}

/// Begins a `PATCH` operation.
pub(crate) fn patch(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Patch, MethodFilter::PATCH, path, id, summary)
}

/// Begins a `DELETE` operation.
pub(crate) fn delete(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Delete, MethodFilter::DELETE, path, id, summary)
}

impl Operation {
    /// Begins an operation with the statuses of the request guard.
    fn new(
        method: HttpMethod,
        filter: MethodFilter,
        path: &'static str,
        id: &str,
        summary: &str,
    ) -> Self {
        let builder = OperationBuilder::new()
            .operation_id(Some(id))
            .summary(Some(summary));
        // Errors of the request guard: missing or invalid key, untrusted page, too many invalid
        // keys.
        Self {
            path,
            method,
            filter,
            builder,
            refusals: vec![401, 403, 429],
            schemas: Vec::new(),
        }
    }

    /// Sets the group.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.builder = self.builder.tag(tag);
        self
    }

    /// Declares the path parameters as UUIDs; an unknown id returns 404.
    pub(crate) fn ids(self) -> Self {
        self.path_of(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::Custom("uuid".to_owned())))
                .build()
                .into(),
        )
    }

    /// Declares the path parameters as text.
    pub(crate) fn names(self) -> Self {
        self.path_of(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .build()
                .into(),
        )
    }

    fn path_of(mut self, schema: Schema) -> Self {
        if !self.path.contains('{') {
            return self;
        }
        for name in self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        {
            self.builder =
                self.builder
                    .parameter(parameter(ParameterIn::Path, name, schema.clone(), None));
        }
        self.fails_with(&[400, 404, 422])
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, schema: Schema, description: &str) -> Self {
        self.builder = self.builder.parameter(parameter(
            ParameterIn::Query,
            name,
            schema,
            Some(description),
        ));
        self.fails_with(&[400, 422])
    }

    /// Adds a request header.
    pub(crate) fn header(mut self, name: &str, description: &str) -> Self {
        self.builder = self.builder.parameter(parameter(
            ParameterIn::Header,
            name,
            text(),
            Some(description),
        ));
        self.fails_with(&[422])
    }

    /// Adds the `Idempotency-Key` header.
    pub(crate) fn idempotent(mut self) -> Self {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]{1,255}$"))
            .build()
            .into();
        let description = "Idempotency key: a retry with the same key within a day gets the result of the first request.";
        self.builder = self.builder.parameter(parameter(
            ParameterIn::Header,
            IDEMPOTENCY_HEADER,
            name,
            Some(description),
        ));
        self.fails_with(&[422])
    }

    /// Returns a reference to the schema of `T`, which it adds.
    fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        collect::<T>(&mut self.schemas);
        reference::<T>()
    }

    /// Sets the type of the required body.
    pub(crate) fn body<T: ToSchema>(self) -> Self {
        self.sent::<T>(Required::True)
    }

    /// Sets the type of the optional body; a missing body equals an empty object.
    pub(crate) fn optional_body<T: ToSchema>(self) -> Self {
        self.sent::<T>(Required::False)
    }

    fn sent<T: ToSchema>(mut self, required: Required) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(self.refer::<T>()))
            .build();
        let body = RequestBodyBuilder::new()
            .content(JSON, content)
            .required(Some(required))
            .build();
        self.builder = self.builder.request_body(Some(body));
        self.fails_with(&[400, 408, 413, 415, 422])
    }

    /// Sets the media types of a required body that is no JSON of a type.
    pub(crate) fn file_body(mut self, kinds: &[&str]) -> Self {
        let body = kinds
            .iter()
            .fold(RequestBodyBuilder::new(), |body, kind| {
                let content = ContentBuilder::new().schema(Some(text())).build();
                body.content(*kind, content)
            })
            .required(Some(Required::True))
            .build();
        self.builder = self.builder.request_body(Some(body));
        self.fails_with(&[400, 408, 413, 415, 422])
    }

    /// Sets the type of a multipart form.
    pub(crate) fn form<T: ToSchema>(self) -> Self {
        self.form_as::<T>("multipart/form-data")
    }

    /// Sets the type of a form in URL encoding.
    pub(crate) fn urlencoded_form<T: ToSchema>(self) -> Self {
        self.form_as::<T>("application/x-www-form-urlencoded")
    }

    fn form_as<T: ToSchema>(mut self, kind: &str) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(self.refer::<T>()))
            .build();
        let body = RequestBodyBuilder::new()
            .content(kind, content)
            .required(Some(Required::True))
            .build();
        self.builder = self.builder.request_body(Some(body));
        self.fails_with(&[400, 408, 413, 415, 422])
    }

    /// Adds a 200 response with JSON of type `T`.
    pub(crate) fn returns<T: ToSchema>(mut self, description: &str) -> Self {
        let schema = self.refer::<T>();
        self.returns_as(JSON, schema, description)
    }

    /// Adds a response with another status and JSON of type `T`.
    pub(crate) fn returns_with_status<T: ToSchema>(
        mut self,
        status: u16,
        description: &str,
    ) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(self.refer::<T>()))
            .build();
        let response = ResponseBuilder::new()
            .description(description)
            .content(JSON, content)
            .build();
        self.builder = self.builder.response(status.to_string(), response);
        self
    }

    /// Adds a 200 response with an event stream.
    pub(crate) fn streams(mut self) -> Self {
        let schema = self.refer::<StreamEvent>();
        self.returns_as("text/event-stream", schema, "The events as they occur.")
    }

    /// Adds a 200 response with text of the media type `kind`.
    pub(crate) fn returns_text(self, kind: &str, description: &str) -> Self {
        self.returns_as(kind, text().into(), description)
    }

    /// Adds a 200 response with JSON of type `T` or with text of the media type `kind`.
    pub(crate) fn returns_either<T: ToSchema>(mut self, kind: &str, description: &str) -> Self {
        let json = self.refer::<T>();
        let of = |schema: RefOr<Schema>| ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content(kind, of(text().into()));
        self.builder = self
            .builder
            .response("200", response.content(JSON, of(json)).build());
        self
    }

    fn returns_as(mut self, kind: &str, schema: RefOr<Schema>, description: &str) -> Self {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        self.builder = self.builder.response(
            "200",
            ResponseBuilder::new()
                .description(description)
                .content(kind, content)
                .build(),
        );
        self
    }

    /// Adds a response without a body.
    pub(crate) fn returns_empty(mut self, status: u16, description: &str) -> Self {
        self.builder = self.builder.response(
            status.to_string(),
            ResponseBuilder::new().description(description).build(),
        );
        self
    }

    /// Adds error statuses with the standard error body.
    pub(crate) fn fails_with(mut self, statuses: &[u16]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// Declares that errors of status 422 can also be plain text.
    pub(crate) fn fails_with_text(mut self) -> Self {
        let plain = ContentBuilder::new().schema(Some(text())).build();
        let response = error_response(422)
            .content("text/plain; charset=utf-8", plain)
            .build();
        self.builder = self.builder.response("422", response);
        self.refusals.retain(|status| *status != 422);
        self
    }

    /// Declares that errors of this status are JSON of type `T`.
    pub(crate) fn fails_as<T: ToSchema>(mut self, status: u16) -> Self {
        let own = ContentBuilder::new()
            .schema(Some(self.refer::<T>()))
            .build();
        self.builder = self.builder.response(
            status.to_string(),
            ResponseBuilder::new()
                .description(error_description(status))
                .content(JSON, own)
                .build(),
        );
        self.refusals.retain(|refusal| *refusal != status);
        self
    }

    /// Returns the route with its description and its handler.
    pub(crate) fn handled_by<H, T>(mut self, handler: H) -> UtoipaMethodRouter<Arc<GatewayState>>
    where
        H: Handler<T, Arc<GatewayState>>,
        T: 'static,
    {
        self.refusals.sort_unstable();
        self.refusals.dedup();
        for status in self.refusals {
            self.builder = self
                .builder
                .response(status.to_string(), error_response(status).build());
        }
        self.builder = self.builder.response("5XX", error_response(500).build());
        collect::<Error>(&mut self.schemas);
        let mut paths = Paths::new();
        paths.add_path_operation(self.path, vec![self.method], self.builder.build());
        let route = MethodRouter::new().on(self.filter, handler);
        (self.schemas, paths, route)
    }
}

fn error_response(status: u16) -> ResponseBuilder {
    let content = ContentBuilder::new()
        .schema(Some(reference::<Error>()))
        .build();
    ResponseBuilder::new()
        .description(error_description(status))
        .content(JSON, content)
}

fn error_description(status: u16) -> &'static str {
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
