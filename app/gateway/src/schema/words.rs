//! Field types with a fixed set of words.

/// Declares the type of a string field that must be one of several words, each with its meaning.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident($meaning:ty) { $($word:literal => $value:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name(
            /// Meaning of the word.
            pub $meaning,
        );

        impl $name {
            /// The words with their meanings.
            pub const WORDS: &'static [(&'static str, $meaning)] = &[$(($word, $value)),+];
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let sent = String::deserialize(deserializer)?;
                let known = Self::WORDS.iter().find(|(word, _)| *word == sent);
                known
                    .map(|(_, meaning)| Self(*meaning))
                    .ok_or_else(|| serde::de::Error::custom("unknown word"))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(Self::WORDS.iter().map(|(word, _)| *word)))
                    .build()
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use words;
