//! The steps that the test applies to a limiter under traffic.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Puts another configuration in force.
    Reload,
    /// Reloads an invalid configuration.
    ReloadBroken,
    /// Puts another configuration in force by SIGHUP.
    HangUp,
    /// SIGHUP with an invalid configuration.
    HangUpBroken,
    /// SIGKILL, then another daemon.
    Kill,
    /// SIGTERM, then another daemon with another configuration.
    Terminate,
    /// SIGKILL or SIGTERM during a reload, then another daemon.
    EndInReload,
    /// SIGKILL or SIGTERM while a daemon takes over, then another daemon.
    EndInStart,
    /// SIGKILL or SIGTERM during resets and refunds of the first client's buckets, then another
    /// daemon: a bucket left locked would cost the client packets.
    EndInReset,
    /// Another build of the program takes over: with log statements, or without.
    Upgrade,
    /// A policy is reverted because its confirmation does not arrive.
    Expire,
    /// SIGKILL before a policy is confirmed, then another daemon.
    KillUnconfirmed,
    /// Bans the suspect, or lifts its ban.
    Ban,
    /// The same without a daemon.
    BanPinned,
    /// A feed adds or removes the suspect.
    List,
    /// Another interface takes the name of a limited one.
    Replace,
    /// The same without a daemon.
    ReplacePinned,
    /// A daemon cannot read the state file when it starts; the next one can.
    Unreadable,
    /// Clients fill the metrics' port and the control socket during a reload.
    Crowd,
    /// Many requests come to the control socket at once.
    Burst,
    /// Pins are removed, and the daemon makes them again.
    LosePins,
    /// A daemon is killed while its disk hangs, and another starts before the disk answers.
    HangDisk,
}

impl Step {
    pub(crate) const ALL: [Self; 22] = [
        Self::Reload,
        Self::ReloadBroken,
        Self::HangUp,
        Self::HangUpBroken,
        Self::Kill,
        Self::Terminate,
        Self::EndInReload,
        Self::EndInStart,
        Self::EndInReset,
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
        Self::Burst,
        Self::LosePins,
        Self::HangDisk,
    ];

    /// Returns whether the step may put the previous policy in force again.
    pub(crate) const fn may_give_up_a_policy(self) -> bool {
        matches!(
            self,
            Self::EndInReload | Self::EndInStart | Self::Expire | Self::KillUnconfirmed
        )
    }
}
