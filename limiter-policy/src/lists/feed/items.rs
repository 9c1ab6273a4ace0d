//! Reads a JSON list one item at a time: keeping all items of a document with many small ones would
//! take eight times its size.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::ParseError;

/// Reads the items of a list, or of `null`, which has none. Stops at the first error.
pub(super) struct Items<F>(pub(super) F);

impl<'d, F: FnMut(&'d RawValue) -> Result<(), ParseError>> DeserializeSeed<'d> for Items<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'d, F: FnMut(&'d RawValue) -> Result<(), ParseError>> Visitor<'d> for Items<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'d>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Reads the [`Items`] in one field of an object. Returns whether the object has the field, and passes the
/// names of its other fields to `others`.
pub(super) struct FieldItems<F, O> {
    pub(super) field: &'static str,
    pub(super) each: F,
    pub(super) others: O,
}

impl<'d, F, O> DeserializeSeed<'d> for FieldItems<F, O>
where
    F: FnMut(&'d RawValue) -> Result<(), ParseError>,
    O: FnMut(String),
{
    type Value = bool;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'d, F, O> Visitor<'d> for FieldItems<F, O>
where
    F: FnMut(&'d RawValue) -> Result<(), ParseError>,
    O: FnMut(String),
{
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(mut self, mut fields: A) -> Result<bool, A::Error> {
        let mut is_there = false;
        while let Some(name) = fields.next_key::<String>()? {
            if name == self.field {
                is_there = true;
                fields.next_value_seed(Items(&mut self.each))?;
            } else {
                (self.others)(name);
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(is_there)
    }
}
