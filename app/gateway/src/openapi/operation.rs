//! One operation: what the document says of it, together with the handler that does it.

use std::sync::Arc;

use axum::Extension;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use serde_json::Value;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{ContentBuilder, HttpMethod, Ref, RefOr, Required, ResponseBuilder};
use utoipa_axum::router::UtoipaMethodRouter;

use super::Shape;
use crate::repeats::HEADER;
use crate::state::GatewayState;

/// The component that describes a refusal.
pub(crate) const REFUSAL: &str = "Error";
const JSON: &str = "application/json";

/// An operation on its way into the router and the document, both at once.
pub(crate) struct Operation {
    path: &'static str,
    method: HttpMethod,
    filter: MethodFilter,
    said: OperationBuilder,
    /// What is refused with the usual body, besides what other methods add.
    refusals: Vec<u16>,
    body: Option<Shape>,
}

/// Begins an operation that reads.
pub(crate) fn get(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Get, MethodFilter::GET, path, id, summary)
}

/// Begins an operation that asks or makes.
pub(crate) fn post(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Post, MethodFilter::POST, path, id, summary)
}

/// Begins an operation that writes whole.
pub(crate) fn put(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Put, MethodFilter::PUT, path, id, summary)
}

/// Begins an operation that changes parts.
pub(crate) fn patch(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Patch, MethodFilter::PATCH, path, id, summary)
}

/// Begins an operation that removes.
pub(crate) fn delete(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new(HttpMethod::Delete, MethodFilter::DELETE, path, id, summary)
}

impl Operation {
    /// The parameters of the path are all ids, except those that [`Operation::names`] says are not.
    fn new(
        method: HttpMethod,
        filter: MethodFilter,
        path: &'static str,
        id: &str,
        summary: &str,
    ) -> Self {
        let said = OperationBuilder::new()
            .operation_id(Some(id))
            .summary(Some(summary));
        // The door: no key or a wrong one, a foreign page, too many wrong keys.
        Self {
            path,
            method,
            filter,
            said,
            refusals: vec![401, 403, 429],
            body: None,
        }
    }

    /// The group it is listed in.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        self.said = self.said.tag(tag);
        self
    }

    /// The ids of the path are UUIDs; one that does not exist is 404.
    pub(crate) fn ids(self) -> Self {
        self.path_of(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::Custom("uuid".to_owned())))
                .build()
                .into(),
        )
    }

    /// What stands in the path is text, UUIDs are taken too.
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
            self.said =
                self.said
                    .parameter(parameter(ParameterIn::Path, name, schema.clone(), None));
        }
        self.refuses(&[400, 404, 422])
    }

    /// A parameter of the query.
    pub(crate) fn query(mut self, name: &str, schema: Schema, description: &str) -> Self {
        self.said = self.said.parameter(parameter(
            ParameterIn::Query,
            name,
            schema,
            Some(description),
        ));
        self.refuses(&[400, 422])
    }

    /// A header of the request.
    pub(crate) fn header(mut self, name: &str, description: &str) -> Self {
        self.said = self.said.parameter(parameter(
            ParameterIn::Header,
            name,
            text(),
            Some(description),
        ));
        self.refuses(&[422])
    }

    /// It may be sent again under the name that its client gives it.
    pub(crate) fn repeatable(mut self) -> Self {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[!-~]{1,255}$"))
            .build()
            .into();
        let description = "Names the request: sent again within a day, it is answered with what it made the first time.";
        self.said = self.said.parameter(parameter(
            ParameterIn::Header,
            HEADER,
            name,
            Some(description),
        ));
        self.refuses(&[422])
    }

    /// The component that the body must be.
    pub(crate) fn body(self, component: &'static str) -> Self {
        self.sent(component, Required::True)
    }

    /// The component that the body may be; none is as good as an empty object.
    pub(crate) fn optional_body(self, component: &'static str) -> Self {
        self.sent(component, Required::False)
    }

    fn sent(mut self, component: &'static str, required: Required) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(reference(component)))
            .build();
        let body = RequestBodyBuilder::new()
            .content(JSON, content)
            .required(Some(required))
            .build();
        self.said = self.said.request_body(Some(body));
        self.body = Some(Shape::of(component));
        self.refuses(&[400, 408, 413, 415, 422])
    }

    /// The component that the parts of a form must be.
    pub(crate) fn form(mut self, component: &'static str) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(reference(component)))
            .build();
        let body = RequestBodyBuilder::new()
            .content("multipart/form-data", content)
            .required(Some(Required::True))
            .build();
        self.said = self.said.request_body(Some(body));
        self.refuses(&[400, 408, 413, 415, 422])
    }

    /// 200 with a component.
    pub(crate) fn answers(self, component: &str, description: &str) -> Self {
        self.answers_as(JSON, reference(component), description)
    }

    /// Another status with a component.
    pub(crate) fn answers_as_well(
        mut self,
        status: u16,
        component: &str,
        description: &str,
    ) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(reference(component)))
            .build();
        let response = ResponseBuilder::new()
            .description(description)
            .content(JSON, content)
            .build();
        self.said = self.said.response(status.to_string(), response);
        self
    }

    /// 200 with an event stream.
    pub(crate) fn streams(self) -> Self {
        self.answers_as(
            "text/event-stream",
            reference("StreamEvent"),
            "The events, as they come.",
        )
    }

    /// 200 with text of another kind.
    pub(crate) fn answers_text(self, kind: &str, description: &str) -> Self {
        self.answers_as(kind, text().into(), description)
    }

    /// 200 with a component, or with text of another kind.
    pub(crate) fn answers_either(mut self, component: &str, kind: &str, description: &str) -> Self {
        let of = |schema: RefOr<Schema>| ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content(kind, of(text().into()));
        self.said = self.said.response(
            "200",
            response.content(JSON, of(reference(component))).build(),
        );
        self
    }

    fn answers_as(mut self, kind: &str, schema: RefOr<Schema>, description: &str) -> Self {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        self.said = self.said.response(
            "200",
            ResponseBuilder::new()
                .description(description)
                .content(kind, content)
                .build(),
        );
        self
    }

    /// A status without a body.
    pub(crate) fn answers_empty(mut self, status: u16, description: &str) -> Self {
        self.said = self.said.response(
            status.to_string(),
            ResponseBuilder::new().description(description).build(),
        );
        self
    }

    /// Statuses with the usual body of a refusal.
    pub(crate) fn refuses(mut self, statuses: &[u16]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// What is wrong is told as bare text too (422).
    pub(crate) fn refuses_in_text(mut self) -> Self {
        let plain = ContentBuilder::new().schema(Some(text())).build();
        let response = refusal(422)
            .content("text/plain; charset=utf-8", plain)
            .build();
        self.said = self.said.response("422", response);
        self.refusals.retain(|status| *status != 422);
        self
    }

    /// A refusal (400) in the body of a component of its own.
    pub(crate) fn refuses_as(mut self, component: &str) -> Self {
        let own = ContentBuilder::new()
            .schema(Some(reference(component)))
            .build();
        self.said = self.said.response(
            "400",
            ResponseBuilder::new()
                .description(meaning(400))
                .content(JSON, own)
                .build(),
        );
        self.refusals.retain(|status| *status != 400);
        self
    }

    /// The route: what was said, and the handler that keeps it.
    pub(crate) fn by<H, T>(mut self, handler: H) -> UtoipaMethodRouter<Arc<GatewayState>>
    where
        H: Handler<T, Arc<GatewayState>>,
        T: 'static,
    {
        self.refusals.sort_unstable();
        self.refusals.dedup();
        for status in self.refusals {
            self.said = self
                .said
                .response(status.to_string(), refusal(status).build());
        }
        self.said = self.said.response("5XX", refusal(500).build());
        let mut paths = Paths::new();
        paths.add_path_operation(self.path, vec![self.method], self.said.build());
        let route = MethodRouter::new().on(self.filter, handler);
        (
            Vec::new(),
            paths,
            match self.body {
                Some(shape) => route.layer(Extension(shape)),
                None => route,
            },
        )
    }
}

fn refusal(status: u16) -> ResponseBuilder {
    let content = ContentBuilder::new()
        .schema(Some(reference(REFUSAL)))
        .build();
    ResponseBuilder::new()
        .description(meaning(status))
        .content(JSON, content)
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "Understood, and refused.",
        401 => "No API key, or a wrong one.",
        403 => "Not allowed.",
        404 => "It does not exist, or belongs to somebody else.",
        408 => "The body did not arrive in time.",
        409 => "It does not go together with what is there.",
        412 => "It changed since it was read.",
        413 => "The body is too large.",
        415 => "The body is compressed, or of a kind that this cannot be done with.",
        422 => "A part of the request is not as described here.",
        429 => "Too much at once.",
        _ => "Our fault, or a part we need does not answer.",
    }
}

fn reference(component: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(component))
}

fn parameter(
    place: ParameterIn,
    name: &str,
    schema: Schema,
    description: Option<&str>,
) -> Parameter {
    let required = if place == ParameterIn::Path {
        Required::True
    } else {
        Required::False
    };
    ParameterBuilder::new()
        .parameter_in(place)
        .name(name)
        .required(required)
        .description(description)
        .schema(Some(schema))
        .build()
}

/// Any text.
pub(crate) fn text() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .build()
        .into()
}

/// True or false.
pub(crate) fn flag() -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .default(Some(Value::Bool(false)))
        .build()
        .into()
}

/// A whole number, and what it is when nobody says.
pub(crate) fn number(low: u32, high: u32, default: u32) -> Schema {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .default(Some(default.into()));
    number
        .minimum(Some(f64::from(low)))
        .maximum(Some(f64::from(high)))
        .build()
        .into()
}

/// A whole number of any size from `low` on.
pub(crate) fn whole_number(low: u32) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(f64::from(low)))
        .build()
        .into()
}

/// A whole number of at most `most`, above zero or below; zero when nobody says.
pub(crate) fn signed(most: u32) -> Schema {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .default(Some(0.into()));
    number
        .minimum(Some(-f64::from(most)))
        .maximum(Some(f64::from(most)))
        .build()
        .into()
}

/// One of the words that a handler knows.
pub(crate) fn word<T>(words: &[(&str, T)]) -> Schema {
    let words = words.iter().map(|(word, _)| *word);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .build()
        .into()
}

/// Texts: the parameter repeated, or one with commas or a JSON list.
pub(crate) fn texts() -> Schema {
    ArrayBuilder::new().items(RefOr::T(text())).build().into()
}
