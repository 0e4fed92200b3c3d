import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { find, objects } from './support/render.js';
import { root, withHelm } from './support/tools.js';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { severity: string };
  readonly annotations: { summary: string; runbook_url: string };
}

withHelm('the alerts', () => {
  const alerts = (): Alert[] =>
    (find(objects('ha'), 'PrometheusRule', 'rialto-alerts').spec.groups as { rules: Alert[] }[]).flatMap(
      ({ rules }) => rules,
    );
  /** Names of metrics with their labels, as an expression spells them. */
  const namedIn = (expr: string) =>
    [...expr.matchAll(/([a-z]\w+)\{([^}]*)\}/g)].map(([, name, labels]) => ({
      name: name!,
      labels: [...labels!.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label]) => label!),
    }));

  it('name only metrics that exist, with labels that they have', () => {
    const known = new Map(
      (new Metrics().all.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[]).map(
        ({ name, labelNames }) => [name, labelNames],
      ),
    );
    for (const { alert, expr } of alerts()) {
      const named = namedIn(expr);
      expect([alert, named.length > 0]).toEqual([alert, true]);
      expect(expr.match(/\b(rialto|nodejs|process)_\w+/g)).toEqual(named.map(({ name }) => name));
      for (const { name, labels } of named) {
        const own = known.get(name) ?? known.get(name.replace(/_(count|sum|bucket)$/, ''));
        expect([name, own]).toEqual([name, expect.any(Array)]);
        expect([name, labels.filter((label) => !['namespace', 'service', ...own!].includes(label))]).toEqual([
          name,
          [],
        ]);
        expect(labels.slice(0, 2)).toEqual(['namespace', 'service']);
      }
    }
  });

  it('have a section each in docs/operate.md, and no section is without its alert', () => {
    const page = readFileSync(join(root, 'docs', 'operate.md'), 'utf8');
    const sections = [
      ...page.matchAll(/^### (Rialto\w+)\n\n(?:\S.*\n)+\n- First look: .+\n(?: {2}.+\n)*- Remedy: .+\n/gm),
    ];
    expect(sections.map(([, name]) => name)).toEqual(alerts().map(({ alert }) => alert));
    for (const { alert, labels, annotations } of alerts()) {
      expect(annotations.runbook_url).toBe(`https://wiki.example.com/rialto#${alert.toLowerCase()}`);
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary).not.toBe('');
    }
  });

  it('and the scraping come with the operator only, and find the metrics of both roles', () => {
    const kinds = objects('standard').map(({ kind }) => kind);
    expect(kinds.filter((kind) => ['ServiceMonitor', 'PrometheusRule'].includes(kind))).toEqual([]);
    const all = objects('ha');
    const { metadata, spec } = find(all, 'ServiceMonitor', 'rialto-metrics');
    const service = find(all, 'Service', 'rialto-metrics');
    expect(metadata.labels).toMatchObject({ release: 'prometheus' });
    expect(service.metadata.labels).toMatchObject((spec.selector as { matchLabels: object }).matchLabels);
    expect((service.spec.ports as { name: string }[]).map(({ name }) => name)).toEqual(['metrics']);
    expect(spec.endpoints).toMatchObject([{ port: 'metrics', path: '/metrics' }]);
  });
});
