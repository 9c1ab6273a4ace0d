//! A target: a measurement and its bound.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) unit: &'static str,
    /// `None` if not measured.
    pub(crate) measured: Option<f64>,
    pub(crate) met: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Within(f64, f64),
}

impl Bound {
    fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(least) => measured >= least,
            Self::AtMost(most) => measured <= most,
            Self::Within(least, most) => (least..=most).contains(&measured),
        }
    }
}

impl Target {
    /// Compares a measurement with its bound.
    pub(crate) fn new(
        what: impl Into<String>,
        bound: Bound,
        unit: &'static str,
        measured: Option<f64>,
    ) -> Self {
        Self {
            what: what.into(),
            bound,
            unit,
            measured,
            met: measured.map(|measured| bound.holds(measured)),
        }
    }
}
