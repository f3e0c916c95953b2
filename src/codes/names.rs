//! Stable names: one list gives an enum its variants, their spelling outside and what they mean.

/// Declares an enum of codes. `NAME` is written in logs and messages; the first doc line is its entry in the catalogue.
macro_rules! names {
    ($(#[$meta:meta])* pub enum $Enum:ident { $($(#[doc = $doc:literal])+ $Variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $Enum {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $Variant,)+
        }

        impl $Enum {
            /// All of them, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$Variant),+];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// What it means, in one line or two.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$Variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}
pub(crate) use names;
