//! Pages whose entries may have selected fields only.

/// Declares a list of `$entry` in which no field is required.
macro_rules! selection {
    ($(#[$meta:meta])* $name:ident of $entry:ty: $description:literal) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let entry = crate::schema::changed_object(
                    <$entry as utoipa::PartialSchema>::schema(),
                    |object| {
                        object.required.clear();
                        object.description = Some($description.to_owned());
                    },
                );
                utoipa::openapi::schema::ArrayBuilder::new()
                    .items(entry)
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(
                schemas: &mut Vec<(
                    String,
                    utoipa::openapi::RefOr<utoipa::openapi::Schema>,
                )>,
            ) {
                <$entry as utoipa::ToSchema>::schemas(schemas);
            }
        }
    };
}

pub(super) use selection;
