# syntax=docker/dockerfile:1
# One image, role by RIALTO_ROLE. To run a command instead: `docker run … rialto dist/src/cli.js db migrate`.
# Bases are pinned by digest; a newer one goes in here, by review, not by a moving tag.
ARG BUILD_IMAGE=node:24.21.0-trixie-slim@sha256:173f125896c3b47ddf056734c7ea789d04595a6a08769a8f78e0df642781fb66
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot@sha256:9eeb7f5887d0e239e78264b06f7f11d2e14be534050481803a9e4728fcdd278e

FROM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY migrations ./migrations
COPY scripts/bundle.mjs ./scripts/
RUN node node_modules/typescript-native/bin/tsc -p tsconfig.build.json
RUN node scripts/bundle.mjs
# What `/version` names; last, for it changes with every build.
ARG COMMIT=
RUN echo "$COMMIT" > dist/commit

# The embedded database is an optional dependency: a production image must not carry it.
FROM ${BUILD_IMAGE} AS deps
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# What keeps programs of MCP servers to their limits and away from the memory of the gateway, with the libraries that the runtime image lacks.
FROM ${BUILD_IMAGE} AS tools
WORKDIR /app
RUN mkdir tools && ldd /usr/bin/setpriv /usr/bin/prlimit /usr/bin/unshare | awk '/=> \// { print $3 }' | sed 's#^/lib/#/usr/lib/#' | grep -v /libc.so | sort -u | xargs cp --parents -t tools /usr/bin/setpriv /usr/bin/prlimit /usr/bin/unshare

FROM ${RUNTIME_IMAGE} AS base

# No shell, no package manager; files belong to root, so the process can change nothing but /tmp.
FROM base AS runtime
LABEL org.opencontainers.image.title="rialto" \
      org.opencontainers.image.description="An agent gateway: agents find, call and answer each other over A2A and MCP." \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
    PORT=3000 \
    METRICS_PORT=9464
WORKDIR /app
COPY --from=tools /app/tools/ /
# Linux lets nobody but root read the memory of a process whose program it may run and not read.
COPY --from=base --chmod=0711 /nodejs/bin/node /nodejs/bin/node
COPY package.json ./
COPY --from=deps /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER 65532:65532
EXPOSE 3000 9464
CMD ["dist/src/main.js"]
