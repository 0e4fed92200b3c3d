// Reads the chart as rendered for the tests (test/helm/golden/standard.golden): the commands, variables and times with
// which a cluster would run the image.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from './setup.mjs';

/** The address of the Service in the rendered commands. */
const service = 'http://rialto.rialto-test.svc:80';

const objects = parseAllDocuments(readFileSync(join(root, 'test/helm/golden/standard.golden'), 'utf8'))
  .map((document) => document.toJS())
  .filter((object) => object !== null);

function pod(kind, name) {
  const object = objects.find((each) => each.kind === kind && each.metadata.name === name);
  if (!object) throw new Error(`the rendered chart has no ${kind} ${name}`);
  return kind === 'Pod' ? object.spec : object.spec.template.spec;
}

/**
 * Converts a container of the chart to a command.
 * @param secrets values by the keys of the chart's Secret. Throws when the container needs another key.
 */
function command(spec, name, { secrets, url }) {
  const container = [...(spec.initContainers ?? []), ...spec.containers].find((each) => each.name === name);
  if (!container) throw new Error(`the rendered chart has no container ${name}`);
  const here = (text) => text.replaceAll(service, url);
  const env = container.env.map(({ name: variable, value, valueFrom }) => {
    if (value !== undefined) return [variable, here(String(value))];
    const { key } = valueFrom.secretKeyRef;
    if (!(key in secrets)) throw new Error(`${name}: the key ${key} of the Secret has no value in this run`);
    return [variable, secrets[key]];
  });
  return { args: container.args?.map(here), env: Object.fromEntries(env) };
}

/**
 * Returns the commands of the chart in the order in which a cluster runs them.
 * @param context `secrets` by key, `url` of the gateway.
 */
export function chartCommands(context) {
  const api = pod('Deployment', 'rialto-api');
  const worker = pod('Deployment', 'rialto-worker');
  const { preStop } = api.containers[0].lifecycle;
  return {
    migrate: command(pod('Job', 'rialto-migrate'), 'migrate', context),
    wait: command(api, 'db-wait', context),
    api: command(api, 'api', context),
    worker: command(worker, 'worker', context),
    ready: command(pod('Pod', 'rialto-test-ready'), 'ready', context),
    doctor: command(pod('Pod', 'rialto-test-doctor'), 'doctor', context),
    /** Seconds from SIGTERM to SIGKILL. The sleep before SIGTERM is part of the grace period of the chart. */
    graceSeconds: {
      api: api.terminationGracePeriodSeconds - preStop.sleep.seconds,
      worker: worker.terminationGracePeriodSeconds,
    },
    user: { uid: api.securityContext.runAsUser, gid: api.securityContext.runAsGroup },
  };
}
