import { chart, helm, withHelm } from './support/tools.js';
import { template } from './support/render.js';

const problemsOf = (err: string) => err.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []));
const problems = (...sets: string[]) =>
  problemsOf(template('helm4', 'standard', ...sets.flatMap((set) => ['--set', set])).err);

withHelm('values that contradict each other', () => {
  it('are all named at once, each with its fix', () => {
    const { ok, err } = helm('helm4', 'template', 'rialto', chart, '--namespace', 'agents');
    expect(ok).toBe(false);
    expect(problemsOf(err)).toEqual([
      'image.repository is empty: ' +
        'set it to where your build of the Dockerfile is kept, e.g. registry.example.com/rialto',
      'secrets.existingSecret is empty: make the Secret with ' +
        '`rialto secrets init --namespace agents | kubectl apply -f -` and set its name',
      'config.publicUrl is empty: set the address others reach the gateway at, e.g. https://rialto.example.com',
    ]);
  });

  it.each([
    ['a tag that moves', ['image.tag=latest'], /image\.tag latest moves/],
    [
      'credentials in an address',
      ['config.publicUrl=https://me:pw@rialto.example.com'],
      /config\.publicUrl carries credentials/,
    ],
    ['an Ingress without hosts', ['ingress.hosts=null'], /ingress\.hosts is empty/],
    ['a route without a gateway', ['httpRoute.enabled=true'], /httpRoute\.parentRefs is empty/],
    ['ha without budgets', ['profile=ha', 'pdb.enabled=false'], /pdb\.enabled=false contradicts profile=ha/],
    [
      'ha without network policies',
      ['profile=ha', 'networkPolicy.enabled=false'],
      /networkPolicy\.enabled=false contradicts/,
    ],
    ['ha without workers', ['profile=ha', 'worker.enabled=false'], /worker\.enabled=false contradicts/],
    [
      'too short a grace',
      ['api.preStopSleepSeconds=20'],
      /api\.terminationGracePeriodSeconds is too short to drain: set 50 or more/,
    ],
    [
      'an autoscaler upside down',
      ['worker.autoscaling.mode=hpa', 'worker.autoscaling.minReplicas=30'],
      /worker\.autoscaling\.maxReplicas is below/,
    ],
    ['metrics on the port of the doors', ['metrics.port=3000'], /metrics\.port is 3000/],
    ['two servers on one port', ['grpc.enabled=true', 'grpc.port=9464'], /metrics\.port and grpc\.port are the same/],
    [
      'a variable that the chart owns',
      ['podDefaults.extraEnv[0].name=REDIS_URL', 'podDefaults.extraEnv[0].value=x'],
      /names REDIS_URL, which the chart sets/,
    ],
    [
      'a secret in the open',
      ['podDefaults.extraEnv[0].name=OPS_TOKEN', 'podDefaults.extraEnv[0].value=x'],
      /OPS_TOKEN a literal value: use valueFrom\.secretKeyRef/,
    ],
    [
      'a declared variable that is not there',
      ['bootstrap.apiKeyEnv=LEGACY_KEY'],
      /bootstrap names the variable LEGACY_KEY/,
    ],
    [
      'a variable of a declared MCP server that is not there',
      [
        'bootstrap.mcpServers.web.url=https://a.example',
        'bootstrap.mcpServers.web.headers.authorization=Bearer ${WEB_TOKEN}',
      ],
      /bootstrap names the variable WEB_TOKEN/,
    ],
    [
      'monitoring without metrics',
      ['monitoring.rules.enabled=true', 'metrics.enabled=false'],
      /monitoring\.rules\.enabled needs metrics\.enabled/,
    ],
    ['no A2A secret and no replacement', ['secrets.keys.a2aSecret='], /secrets\.keys\.a2aSecret is empty/],
  ])('%s is refused', (_, sets, expected) => {
    const found = problems(...sets);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(expected);
  });

  it('what the cluster lacks, Gateway API or Prometheus operator, is named, with the way out', () => {
    const { err } = helm('helm4', 'template', 'rialto', chart, '--values', `${chart}/ci/ha.yaml`);
    expect(problemsOf(err)).toEqual([
      expect.stringContaining('httpRoute.enabled needs the Gateway API, which this cluster lacks'),
      expect.stringContaining('monitoring.rules.enabled needs the Prometheus operator, which this cluster lacks'),
      expect.stringContaining(
        'monitoring.serviceMonitor.enabled needs the Prometheus operator, which this cluster lacks',
      ),
    ]);
  });

  it('Kubernetes before 1.29 is refused, a vendor suffix is not', () => {
    expect(template('helm4', 'standard', '--kube-version', '1.28.9').err).toContain('kubeVersion');
    expect(template('helm4', 'standard', '--kube-version', '1.29.4-eks-1234').ok).toBe(true);
  });

  it('nothing is refused in the ci files', () => {
    expect(problems()).toEqual([]);
  });
});
