import type { Artifact, StreamResponse, TaskArtifactUpdateEvent } from './model.js';

/**
 * Applies an update to a list of artifacts (v1.0 section 4.2.2). With `append`, the parts are added to the artifact
 * with the same id, and its name and description stay unless the update has new ones. Otherwise the artifact is added,
 * or replaces the one with the same id.
 */
export function withArtifact(
  all: readonly Artifact[],
  { artifact, append }: Pick<TaskArtifactUpdateEvent, 'artifact' | 'append'>,
): Artifact[] {
  const index = all.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  if (index < 0) return [...all, artifact];
  return all.with(index, append ? extended(all[index]!, artifact) : artifact);
}

/** Applies events in order to the artifacts that they change. */
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
