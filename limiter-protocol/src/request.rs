//! The requests to the daemon, each with the type of its response: one table, from which both sides of the control
//! channel get their types.

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
    net::IpAddr,
    path::PathBuf,
};

use ipnet::IpNet;
use limiter_policy::{
    lists::{Findings, ListStatus},
    policy::{Policy, RequestedName, bans::Origin},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Explanation, FleetStatus, KeyList, KeyQuery, OffenderList, OffenderQuery, RefundQuery,
    ReloadResult, ResetList, ResetQuery, RolloutPlan, RolloutStatus, StandingExplanation, Status,
    bans::{BanChanges, BanResults, BansPage, BansQuery},
    known::{KnownChanges, KnownList, KnownQuery, KnownResults},
    sieves::SieveStatus,
};

/// A request of one kind, with the type of its response.
pub trait Call: Clone + Into<Request> + Send + 'static {
    /// The response, unless the request fails.
    type Response: Serialize + DeserializeOwned + Send + 'static;
}

/// Defines [`Request`] from a table: the kind of each request, the type with its details, and the type of its response.
/// Members of the group with read access may send the first part of the table, only root the second.
macro_rules! requests {
    (
        queries { $($(#[$query_doc:meta])* $query:ident($query_type:ident) -> $query_response:ty;)* }
        changes { $($(#[$change_doc:meta])* $change:ident($change_type:ident) -> $change_response:ty;)* }
    ) => {
        /// A request to the daemon.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Request {
            $($(#[$query_doc])* $query($query_type),)*
            $($(#[$change_doc])* $change($change_type),)*
        }

        impl Request {
            /// Whether it changes nothing.
            #[must_use]
            pub const fn is_query(&self) -> bool {
                match self {
                    $(Self::$query(_) => true,)*
                    $(Self::$change(_) => false,)*
                }
            }
        }

        requests!(@calls $($query($query_type) -> $query_response;)*);
        requests!(@calls $($change($change_type) -> $change_response;)*);
    };
    (@calls $($kind:ident($details:ident) -> $response:ty;)*) => {
        $(
            impl From<$details> for Request {
                fn from(details: $details) -> Self {
                    Self::$kind(details)
                }
            }

            impl Call for $details {
                type Response = $response;
            }
        )*
    };
}

requests! {
    queries {
        /// Get the enforced policy, the interfaces and the counters.
        Status(StatusQuery) -> Box<Status>;
        /// Get the limits that apply to an address, and the levels of its buckets.
        Explain(Explain) -> Box<Explanation>;
        /// Get the sources that were dropped most.
        Offenders(OffenderQuery) -> OffenderList;
        /// Get the keys with the most open connections.
        Connections(KeyQuery) -> KeyList;
        /// Get the bans in force.
        Bans(BansQuery) -> BansPage;
        /// Get the number of known sources, and the newest.
        Known(KnownQuery) -> KnownList;
        /// Get the standing of an address's source.
        KnownSource(KnownSourceQuery) -> StandingExplanation;
        /// Get the lists, and the origins of their addresses.
        Lists(ListsQuery) -> Vec<ListStatus>;
        /// Get the lists that contain an address or a prefix.
        TestLists(TestLists) -> Findings;
        /// Get the sieves: the addresses they know and their pressure.
        Sieves(SievesQuery) -> Vec<SieveStatus>;
        /// Get the state of the fleet.
        Fleet(FleetQuery) -> Box<FleetStatus>;
        /// Get the whole policy in force.
        Policy(PolicyQuery) -> Box<Policy>;
    }
    changes {
        /// Make or lift bans.
        ChangeBans(BanChanges) -> BanResults;
        /// Lift all bans.
        LiftBans(LiftBans) -> BansLifted;
        /// Trust sources, or untrust them.
        ChangeKnown(KnownChanges) -> KnownResults;
        /// Reset buckets.
        Reset(ResetQuery) -> ResetList;
        /// Give tokens back.
        Refund(RefundQuery) -> ResetList;
        /// Accept feeds of a list that were held back.
        AcceptList(AcceptList) -> AcceptedFiles;
        /// Begin a rollout of a policy to all nodes of the fleet.
        Push(RolloutPlan) -> RolloutStatus;
        /// Get the progress of the rollout. Without these requests, it is rolled back, so they change something.
        PushProgress(PushProgress) -> RolloutStatus;
        /// Keep the policy on all nodes, or roll it back.
        EndPush(EndPush) -> RolloutStatus;
        /// Read the configuration again and put it in force.
        Reload(Reload) -> ReloadResult;
        /// Keep the policy that waits to be confirmed.
        Confirm(Confirm) -> ConfirmedPolicy;
        /// Detach every program, remove every pin, and end, as soon as the response is sent.
        Detach(Detach) -> ();
    }
}

/// The details of [`Request::Status`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StatusQuery;

/// The details of [`Request::Lists`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ListsQuery;

/// The details of [`Request::Fleet`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FleetQuery;

/// The details of [`Request::Policy`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PolicyQuery;

/// The details of [`Request::PushProgress`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PushProgress;

/// The details of [`Request::Reload`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Reload;

/// The details of [`Request::Confirm`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Confirm;

/// The details of [`Request::Detach`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Detach;

/// The details of [`Request::Explain`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explain {
    /// The address.
    pub address: IpAddr,
    /// The destination, for limits with a bucket per destination; `None`: the host's own addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IpAddr>,
    /// The requested name, for limits that count packets by name; `None`: these limits are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_name: Option<RequestedName>,
}

/// The details of [`Request::KnownSource`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownSourceQuery {
    /// The address.
    pub address: IpAddr,
}

/// The details of [`Request::TestLists`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TestLists {
    /// The prefix; an address has full length.
    pub asked: IpNet,
}

/// The details of [`Request::Sieves`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SievesQuery {
    /// The sieve's name; `None`: all.
    pub name: Option<String>,
}

/// The details of [`Request::LiftBans`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LiftBans {
    /// Only bans of this origin; `None`: of all.
    pub origin: Option<Origin>,
}

/// The response to [`Request::LiftBans`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BansLifted {
    /// The number of bans that were in force.
    pub lifted: u64,
}

/// The details of [`Request::AcceptList`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptList {
    /// The list's name.
    pub list: String,
    /// The digests of the contents that an operator has checked.
    pub digests: Vec<String>,
}

/// The response to [`Request::AcceptList`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptedFiles {
    /// The files now in force with their current content.
    pub files: Vec<PathBuf>,
}

/// The details of [`Request::EndPush`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EndPush {
    /// Whether to keep the policy.
    pub keep: bool,
}

/// The response to [`Request::Confirm`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ConfirmedPolicy {
    /// The number of the policy.
    pub generation: u64,
}

/// The daemon's response to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response<T> {
    /// The request succeeded.
    Ok(T),
    /// The request failed.
    Error(Failure),
}

impl<T> From<Result<T, Failure>> for Response<T> {
    fn from(result: Result<T, Failure>) -> Self {
        match result {
            Ok(response) => Self::Ok(response),
            Err(failure) => Self::Error(failure),
        }
    }
}

/// Why a request failed; one error per line. It is no [`Error`] itself, so that any error becomes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure(pub String);

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
