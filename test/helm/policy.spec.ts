import { ciFiles, containersOf, find, objects, podOf, type KubernetesObject } from './support/render.js';
import { withHelm } from './support/tools.js';

const pods = (all: KubernetesObject[]) => all.flatMap((object) => podOf(object) ?? []);
const containers = (all: KubernetesObject[]) => pods(all).flatMap(containersOf);
const deployments = (all: KubernetesObject[]) => all.filter(({ kind }) => kind === 'Deployment');

for (const file of ciFiles) {
  withHelm(`policy of ci/${file}.yaml`, () => {
    const all = () => objects(file);

    it('every pod is what the restricted level asks for: not root, system call filter, no token', () => {
      expect(pods(all()).length).toBeGreaterThanOrEqual(3);
      for (const pod of pods(all())) {
        expect(pod).toMatchObject({
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        });
        expect(pod.hostNetwork ?? pod.hostPID ?? pod.hostIPC ?? false).toBe(false);
        expect(pod.volumes.filter((volume) => 'hostPath' in volume)).toEqual([]);
      }
    });

    it('every container drops all capabilities and writes nothing but /tmp', () => {
      for (const container of containers(all())) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          runAsNonRoot: true,
          capabilities: { drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        });
        const writable = (container.volumeMounts as { mountPath: string; readOnly?: boolean }[]).filter(
          ({ readOnly }) => !readOnly,
        );
        expect(writable.map(({ mountPath }) => mountPath)).toEqual(['/tmp']);
      }
    });

    it('every container requests CPU and memory and has a memory limit', () => {
      for (const { resources } of containers(all())) {
        expect(resources).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
      }
    });

    it('every image is the app, by version or digest', () => {
      for (const { image } of containers(all()))
        expect(image).toMatch(/^registry\.example\.com\/rialto(:0\.1\.0|@sha256:[a-f0-9]{64})$/);
    });

    it('no container needs a shell', () => {
      for (const container of containers(all())) {
        expect(container.command).toBeUndefined();
        expect(JSON.stringify([container.lifecycle, container.livenessProbe, container.readinessProbe])).not.toContain(
          'exec',
        );
      }
    });

    it('every role has start-up, liveness and readiness probes on the doors that D10 names', () => {
      expect(deployments(all()).length).toBeGreaterThan(0);
      for (const { spec } of deployments(all())) {
        const [app] = spec.template!.spec.containers;
        expect(app).toMatchObject({
          startupProbe: { httpGet: { path: '/livez', port: 'http' } },
          livenessProbe: { httpGet: { path: '/livez', port: 'http' } },
          readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
        });
        expect(app!.ports).toContainEqual({ name: 'http', containerPort: 3000 });
      }
    });

    it('every app pod waits for the schema and never migrates; only the migration does', () => {
      for (const { spec } of deployments(all())) {
        const pod = spec.template!.spec;
        expect(pod.initContainers!.at(-1)!.args).toEqual(['dist/src/cli.js', 'db', 'wait']);
        expect(JSON.stringify(pod)).not.toContain('migrate"');
        expect(pod.containers[0]!.args).toBeUndefined();
      }
      const migrating = all().filter((object) =>
        podOf(object)?.containers.some(({ args }) => args?.includes('migrate')),
      );
      expect(migrating.map(({ kind }) => kind)).toEqual(['Job']);
    });

    it('the database commands are given the database and nothing else', () => {
      const commands = containers(all()).filter(({ args }) => args?.[1] === 'db');
      for (const { env, envFrom } of commands) {
        expect(
          env
            .map(({ name }) => name)
            .filter((name) => !/^(NODE_ENV|DATABASE_URL|RIALTO_DATABASE_DIRECT_URL)$/.test(name)),
        ).toEqual([]);
        expect(envFrom).toBeUndefined();
      }
    });

    it('every role is spread over nodes and zones, rolls without a gap, and has time to drain', () => {
      for (const { spec } of deployments(all())) {
        const pod = spec.template!.spec;
        expect(
          (pod.topologySpreadConstraints as { topologyKey: string }[]).map(({ topologyKey }) => topologyKey),
        ).toEqual(['kubernetes.io/hostname', 'topology.kubernetes.io/zone']);
        expect(spec.strategy).toMatchObject({ rollingUpdate: { maxUnavailable: 0 } });
        expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(30);
      }
    });

    it('every pod of the chart has a NetworkPolicy for both directions', () => {
      const policies = all().filter(({ kind }) => kind === 'NetworkPolicy');
      const covered = policies.map(
        ({ spec }) =>
          (spec.podSelector as { matchLabels: Record<string, string> }).matchLabels['app.kubernetes.io/component'],
      );
      const roles = all().flatMap(({ kind, metadata }) =>
        ['Deployment', 'Job'].includes(kind) ? [metadata.labels['app.kubernetes.io/component']] : [],
      );
      expect([...covered].sort()).toEqual([...roles].sort());
      for (const { spec } of policies) expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    });

    it('a budget exists for each role of more than one pod, and never blocks a drain', () => {
      const budgets = all().filter(({ kind }) => kind === 'PodDisruptionBudget');
      const wide = deployments(all()).filter(({ spec }) => spec.replicas !== 1);
      expect(budgets.map(({ metadata }) => metadata.name).sort()).toEqual(
        wide.map(({ metadata }) => metadata.name).sort(),
      );
      for (const { spec } of budgets) {
        expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
        expect(spec.minAvailable).toBeUndefined();
      }
    });

    it('a hook uses no object of the chart that is made after it', () => {
      const hooks = all().filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']?.startsWith('pre-'));
      const later = all().filter(({ metadata }) => !metadata.annotations?.['helm.sh/hook']);
      for (const pod of pods(hooks)) {
        expect(pod.serviceAccountName).toBeUndefined();
        for (const { kind, metadata } of later.filter((object) => object.kind === 'ConfigMap')) {
          expect([kind, JSON.stringify(pod.volumes)]).not.toEqual([
            kind,
            expect.stringContaining(`"${metadata.name}"`),
          ]);
        }
      }
    });
  });
}

withHelm('roles', () => {
  it('workers have no Service and accept nothing but metrics', () => {
    const all = objects('standard');
    const policy = find(all, 'NetworkPolicy', 'rialto-worker');
    expect(policy.spec.ingress).toEqual([{ ports: [{ protocol: 'TCP', port: 'metrics' }] }]);
    expect(find(all, 'NetworkPolicy', 'rialto-migrate').spec.ingress).toBeUndefined();
    const services = all.filter(({ kind }) => kind === 'Service');
    const reaching = services.filter(
      ({ spec }) => (spec.selector as Record<string, string>)['app.kubernetes.io/component'] !== 'api',
    );
    expect(reaching.map(({ metadata, spec }) => [metadata.name, spec.clusterIP])).toEqual([['rialto-metrics', 'None']]);
  });

  it('private networks, the API of the cluster and cloud metadata are out of reach', () => {
    const { egress } = find(objects('standard'), 'NetworkPolicy', 'rialto-api').spec as {
      egress: { to?: { ipBlock?: { cidr: string; except?: string[] } }[] }[];
    };
    const open = egress.flatMap(({ to }) => to ?? []).flatMap(({ ipBlock }) => (ipBlock ? [ipBlock] : []));
    expect(open).toEqual([
      {
        cidr: '0.0.0.0/0',
        except: ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
      },
      { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] },
    ]);
  });

  it('profile ha never runs fewer than three api and two worker pods, each on a node of its own', () => {
    const all = objects('standard', '--set', 'profile=ha,api.replicas=1,worker.replicas=1');
    expect(find(all, 'Deployment', 'rialto-api').spec.replicas).toBe(3);
    const worker = find(all, 'Deployment', 'rialto-worker').spec;
    expect(worker.replicas).toBe(2);
    expect(worker.template!.spec.topologySpreadConstraints).toContainEqual(
      expect.objectContaining({ topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' }),
    );
  });

  it('an autoscaler owns the replica count', () => {
    const all = objects('ha');
    expect(find(all, 'Deployment', 'rialto-api').spec.replicas).toBeUndefined();
    expect(find(all, 'HorizontalPodAutoscaler', 'rialto-api').spec).toMatchObject({ minReplicas: 3, maxReplicas: 12 });
  });

  it('the uid is 65532, unless the platform assigns one; the rest stays as strict', () => {
    const user = (file: 'standard' | 'postgres-queue') =>
      podOf(find(objects(file), 'Deployment', 'rialto-api'))!.securityContext as { runAsUser?: number };
    expect(user('standard').runAsUser).toBe(65532);
    expect(user('postgres-queue').runAsUser).toBeUndefined();
  });

  it('an api pod leaves the endpoints before it stops, where the kubelet can sleep', () => {
    const lifecycle = (version: string) =>
      podOf(find(objects('standard', '--kube-version', version), 'Deployment', 'rialto-api'))!.containers[0]!.lifecycle;
    expect(lifecycle('1.30.0')).toEqual({ preStop: { sleep: { seconds: 5 } } });
    expect(lifecycle('1.29.0')).toBeUndefined();
  });

  it('an ordinary migration Job has a new name for each image, because a Job cannot be changed', () => {
    const job = (tag: string) =>
      objects('postgres-queue', '--set', `image.tag=${tag}`).find(({ kind }) => kind === 'Job')!.metadata;
    expect(job('0.1.0').name).toMatch(/^rialto-migrate-[a-f0-9]{8}$/);
    expect(job('0.1.0').name).toBe(job('0.1.0').name);
    expect(job('0.2.0').name).not.toBe(job('0.1.0').name);
    expect(job('0.1.0').annotations?.['helm.sh/hook']).toBeUndefined();
  });
});
