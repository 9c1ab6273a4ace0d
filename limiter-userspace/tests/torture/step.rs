//! What is done to a limiter under traffic.

/// What may happen to a limiter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Another configuration is put in force.
    Reload,
    /// A configuration that is refused.
    ReloadBroken,
    /// Another configuration is put in force, by SIGHUP.
    HangUp,
    /// SIGHUP with a configuration that is refused.
    HangUpBroken,
    /// SIGKILL, and another daemon.
    Kill,
    /// SIGTERM, and another daemon, with another configuration.
    Terminate,
    /// SIGKILL or SIGTERM while another configuration is put in force, and another daemon.
    EndInReload,
    /// SIGKILL or SIGTERM while a daemon takes over, and another daemon.
    EndInStart,
    /// SIGKILL or SIGTERM while the first client's buckets are made full and given tokens back, and
    /// another daemon: a bucket that stays locked would cost it packets.
    EndInRefill,
    /// Another build of the program takes over: that with log statements, or that without.
    Upgrade,
    /// A policy that nobody confirms is reverted.
    Expire,
    /// SIGKILL while a policy waits to be confirmed, and another daemon.
    KillUnconfirmed,
    /// The suspect is banned, or its ban is lifted.
    Ban,
    /// The same while no daemon runs.
    BanPinned,
    /// A feed lists the suspect, or does so no more.
    List,
    /// Another interface gets the name of one that is limited.
    Replace,
    /// The same while no daemon runs.
    ReplacePinned,
    /// The state file cannot be read when a daemon starts, and can be when the next one does.
    Unreadable,
    /// The metrics' port and the control socket are filled by others, and another configuration is
    /// put in force meanwhile.
    Crowd,
}

impl Step {
    pub(crate) const ALL: [Self; 19] = [
        Self::Reload,
        Self::ReloadBroken,
        Self::HangUp,
        Self::HangUpBroken,
        Self::Kill,
        Self::Terminate,
        Self::EndInReload,
        Self::EndInStart,
        Self::EndInRefill,
        Self::Upgrade,
        Self::Expire,
        Self::KillUnconfirmed,
        Self::Ban,
        Self::BanPinned,
        Self::List,
        Self::Replace,
        Self::ReplacePinned,
        Self::Unreadable,
        Self::Crowd,
    ];

    /// Whether the policy before may be in force again after it.
    pub(crate) const fn may_give_up_a_policy(self) -> bool {
        matches!(
            self,
            Self::EndInReload | Self::EndInStart | Self::Expire | Self::KillUnconfirmed
        )
    }
}
