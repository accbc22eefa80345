//! Builder of one operation: its description together with its handler.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use utoipa::ToSchema;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{HttpMethod, Required, ResponseBuilder};

use super::description::{
    Described, Description, JSON, content_of, error_description, error_response,
};
use super::routes::Route;
use super::schema::{parameter, text};
use crate::extract::IDEMPOTENCY_HEADER;
use crate::responses::documented::StreamEvent;
use crate::state::GatewayState;

/// An operation for the router and the document.
pub(crate) struct Operation {
    filter: MethodFilter,
    described: Described,
}

/// Begins a `GET` operation.
pub(crate) fn get(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(HttpMethod::Get, MethodFilter::GET, path, id, summary)
}

/// Begins a `POST` operation.
pub(crate) fn post(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(HttpMethod::Post, MethodFilter::POST, path, id, summary)
}

/// Begins a `PUT` operation.
pub(crate) fn put(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(HttpMethod::Put, MethodFilter::PUT, path, id, summary)
}

/// Begins a `PATCH` operation.
pub(crate) fn patch(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(HttpMethod::Patch, MethodFilter::PATCH, path, id, summary)
}

/// Begins a `DELETE` operation.
pub(crate) fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(HttpMethod::Delete, MethodFilter::DELETE, path, id, summary)
}

impl Operation {
    fn new(
        method: HttpMethod,
        filter: MethodFilter,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        let described = Described::new(path, method, id, summary);
        Self { filter, described }
    }

    fn with(mut self, part: impl Fn(&mut Description) + Send + Sync + 'static) -> Self {
        self.described.add(part);
        self
    }

    /// Sets the group.
    pub(crate) fn tag(self, tag: &'static str) -> Self {
        self.with(move |description| description.tag(tag))
    }

    /// Declares the path parameters as UUIDs; an unknown id returns 404.
    pub(crate) fn ids(self) -> Self {
        self.path_of(|| {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::Custom("uuid".to_owned())))
                .build()
                .into()
        })
    }

    /// Declares the path parameters as text.
    pub(crate) fn names(self) -> Self {
        self.path_of(|| {
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .build()
                .into()
        })
    }

    fn path_of(self, schema: fn() -> Schema) -> Self {
        let path = self.described.path;
        if !path.contains('{') {
            return self;
        }
        let parts = path.split('/');
        parts
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .fold(self, |operation, name| {
                operation.with(move |description| {
                    let place = ParameterIn::Path;
                    description.parameter(parameter(place, name, schema(), None));
                })
            })
            .fails_with(&[400, 404, 422])
    }

    /// Adds a query parameter.
    pub(crate) fn query(
        self,
        name: &'static str,
        schema: Schema,
        description: &'static str,
    ) -> Self {
        self.parameter(ParameterIn::Query, name, schema, description)
            .fails_with(&[400, 422])
    }

    /// Adds a request header.
    pub(crate) fn header(self, name: &'static str, description: &'static str) -> Self {
        self.parameter(ParameterIn::Header, name, text(), description)
            .fails_with(&[422])
    }

    /// Adds the `Idempotency-Key` header.
    pub(crate) fn idempotent(self) -> Self {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]{1,255}$"))
            .build()
            .into();
        let description = "Idempotency key: a retry with the same key within a day gets the result of the first request.";
        self.parameter(ParameterIn::Header, IDEMPOTENCY_HEADER, key, description)
            .fails_with(&[422])
    }

    fn parameter(
        self,
        place: ParameterIn,
        name: &'static str,
        schema: Schema,
        about: &'static str,
    ) -> Self {
        self.with(move |description| {
            let schema = schema.clone();
            description.parameter(parameter(place.clone(), name, schema, Some(about)));
        })
    }

    /// Sets the type of the required body.
    pub(crate) fn body<T: ToSchema>(self) -> Self {
        self.body_of::<T>(&[JSON], || Required::True)
    }

    /// Sets the type of the optional body; a missing body equals an empty object.
    pub(crate) fn optional_body<T: ToSchema>(self) -> Self {
        self.body_of::<T>(&[JSON], || Required::False)
    }

    /// Sets the type of a multipart form.
    pub(crate) fn form<T: ToSchema>(self) -> Self {
        self.body_of::<T>(&["multipart/form-data"], || Required::True)
    }

    /// Sets the type of a form in URL encoding.
    pub(crate) fn urlencoded_form<T: ToSchema>(self) -> Self {
        self.body_of::<T>(&["application/x-www-form-urlencoded"], || Required::True)
    }

    fn body_of<T: ToSchema>(
        self,
        kinds: &'static [&'static str],
        required: fn() -> Required,
    ) -> Self {
        self.with(move |description| {
            let content = description.content::<T>();
            let body = kinds.iter().fold(RequestBodyBuilder::new(), |body, kind| {
                body.content(*kind, content.clone())
            });
            description.request_body(body.required(Some(required())).build());
        })
        .fails_with(&[400, 408, 413, 415, 422])
    }

    /// Sets the media types of a required body that is no JSON of a type.
    pub(crate) fn file_body(self, kinds: &'static [&'static str]) -> Self {
        self.with(|description| {
            let body = kinds.iter().fold(RequestBodyBuilder::new(), |body, kind| {
                body.content(*kind, content_of(text().into()))
            });
            description.request_body(body.required(Some(Required::True)).build());
        })
        .fails_with(&[400, 408, 413, 415, 422])
    }

    /// Adds a 200 response with JSON of type `T`.
    pub(crate) fn returns<T: ToSchema>(self, description: &'static str) -> Self {
        self.returns_with_status::<T>(200, description)
    }

    /// Adds a response with another status and JSON of type `T`.
    pub(crate) fn returns_with_status<T: ToSchema>(self, status: u16, about: &'static str) -> Self {
        self.returns_as::<T>(status, JSON, about)
    }

    /// Adds a 200 response with an event stream.
    pub(crate) fn streams(self) -> Self {
        self.returns_as::<StreamEvent>(200, "text/event-stream", "The events as they occur.")
    }

    fn returns_as<T: ToSchema>(self, status: u16, kind: &'static str, about: &'static str) -> Self {
        self.with(move |description| {
            let content = description.content::<T>();
            let response = ResponseBuilder::new().description(about);
            description.response(status, response.content(kind, content).build());
        })
    }

    /// Adds a 200 response with text of the media type `kind`.
    pub(crate) fn returns_text(self, kind: &'static str, about: &'static str) -> Self {
        self.with(move |description| {
            let content = content_of(text().into());
            let response = ResponseBuilder::new().description(about);
            description.response(200, response.content(kind, content).build());
        })
    }

    /// Adds a 200 response with JSON of type `T` or with text of the media type `kind`.
    pub(crate) fn returns_either<T: ToSchema>(
        self,
        kind: &'static str,
        about: &'static str,
    ) -> Self {
        self.with(move |description| {
            let json = description.content::<T>();
            let response = ResponseBuilder::new()
                .description(about)
                .content(kind, content_of(text().into()))
                .content(JSON, json);
            description.response(200, response.build());
        })
    }

    /// Adds a response without a body.
    pub(crate) fn returns_empty(self, status: u16, about: &'static str) -> Self {
        self.with(move |description| {
            let response = ResponseBuilder::new().description(about);
            description.response(status, response.build());
        })
    }

    /// Adds error statuses with the standard error body.
    pub(crate) fn fails_with(self, statuses: &'static [u16]) -> Self {
        self.with(|description| description.fails_with(statuses))
    }

    /// Declares that errors of status 422 can also be plain text.
    pub(crate) fn fails_with_text(self) -> Self {
        self.with(|description| {
            let plain = content_of(text().into());
            let response = error_response(422).content("text/plain; charset=utf-8", plain);
            description.fails_as(422, response.build());
        })
    }

    /// Declares that errors of this status are JSON of type `T`.
    pub(crate) fn fails_as<T: ToSchema>(self, status: u16) -> Self {
        self.with(move |description| {
            let content = description.content::<T>();
            let response = ResponseBuilder::new()
                .description(error_description(status))
                .content(JSON, content);
            description.fails_as(status, response.build());
        })
    }

    /// Returns the description of an operation whose handler is added to the router itself.
    pub(crate) fn without_handler(self) -> Described {
        self.described
    }

    /// Returns the operation with its handler.
    pub(crate) fn handled_by<H, T>(self, handler: H) -> Route
    where
        H: Handler<T, Arc<GatewayState>>,
        T: 'static,
    {
        Route {
            operation: self.described,
            handler: MethodRouter::new().on(self.filter, handler),
        }
    }
}
