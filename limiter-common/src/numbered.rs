//! Enums that functions of the BPF object return as numbers, since such functions can return
//! nothing else.

/// Defines an enum and its `of_number`, the inverse of `as u32`; any other number becomes the
/// variant after `else`.
macro_rules! numbered {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $($(#[$about:meta])+ $variant:ident,)+
        } else $other:ident
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $Enum {
            $($(#[$about])+ $variant,)+
        }

        impl $Enum {
            /// The variant with this number.
            #[must_use]
            #[inline(always)]
            pub const fn of_number(number: u32) -> Self {
                $(if number == Self::$variant as u32 {
                    return Self::$variant;
                })+
                Self::$other
            }
        }
    };
}

pub(crate) use numbered;
