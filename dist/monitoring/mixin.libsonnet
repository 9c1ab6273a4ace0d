// A monitoring mixin: the dashboard, the rules and the alerts, for those who build theirs with
// Jsonnet. The files beside it are whole without it.
{
  _config+:: {
    // Selects the daemons.
    limiterSelector: 'job="limiter"',
    // The page that says what to do about each alert; its name, in lower case, is the anchor.
    limiterRunbook: 'file:///usr/share/doc/limiter/docs/alerts.md',
  },

  local adapt(text) =
    local selected = std.strReplace(text, 'job="limiter"', $._config.limiterSelector);
    std.strReplace(selected, 'file:///usr/share/doc/limiter/docs/alerts.md', $._config.limiterRunbook),

  local groups = std.parseYaml(adapt(importstr 'rules.yaml')).groups,
  local named(name) = [group for group in groups if group.name == name],

  prometheusRules+:: { groups+: named('limiter.rules') },
  prometheusAlerts+:: { groups+: named('limiter.alerts') },
  grafanaDashboards+:: {
    local escaped = std.strReplace($._config.limiterSelector, '"', '\\"'),
    'limiter.json': std.parseJson(
      std.strReplace(importstr 'dashboard.json', 'job=\\"limiter\\"', escaped)
    ),
  },
}
