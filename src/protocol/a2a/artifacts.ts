import type { Artifact, StreamResponse, TaskArtifactUpdateEvent } from './model.js';

/**
 * Artifacts after an update (v1.0 section 4.2.2): `append` adds parts to the artifact of the same id, whose name and description
 * stay unless they are said again; otherwise it is new, or replaces the one of its id.
 */
export function withArtifact(
  all: readonly Artifact[],
  { artifact, append }: Pick<TaskArtifactUpdateEvent, 'artifact' | 'append'>,
): Artifact[] {
  const index = all.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  if (index < 0) return [...all, artifact];
  return all.with(index, append ? extended(all[index]!, artifact) : artifact);
}

/** Events applied to the artifacts they change, in their order. */
export function foldArtifacts(artifacts: readonly Artifact[], events: readonly StreamResponse[]): Artifact[] {
  return events.reduce<Artifact[]>(
    (all, event) => ('artifactUpdate' in event ? withArtifact(all, event.artifactUpdate) : all),
    [...artifacts],
  );
}

function extended(known: Artifact, more: Artifact): Artifact {
  const metadata = known.metadata ?? more.metadata;
  return {
    ...known,
    ...more,
    parts: [...known.parts, ...more.parts],
    ...(metadata && { metadata: { ...known.metadata, ...more.metadata } }),
  };
}
