#!/bin/sh
# Laravel with PostgreSQL: a Git repository of three revisions, in FOLDER or ./laravel-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" laravel-app

mkdir -p app/Http/Controllers app/Models bootstrap/cache database/migrations \
    database/seeders public routes storage/framework/cache storage/framework/sessions \
    storage/framework/views storage/logs
for folder in bootstrap/cache storage/framework/cache storage/framework/sessions \
    storage/framework/views storage/logs; do
    printf '%s\n' '*' '!.gitignore' >"$folder/.gitignore"
done
cat >composer.json <<'EOF'
{
    "name": "example/shop",
    "type": "project",
    "require": {
        "php": "^8.2",
        "laravel/framework": "^12.0"
    },
    "autoload": {
        "psr-4": {
            "App\\": "app/",
            "Database\\Seeders\\": "database/seeders/"
        }
    }
}
EOF
cat >.env.example <<'EOF'
APP_NAME=Shop
APP_ENV=local
APP_KEY=
APP_DEBUG=true
DB_CONNECTION=pgsql
DB_HOST=127.0.0.1
DB_PORT=5432
DB_DATABASE=shop
DB_USERNAME=shop
DB_PASSWORD=
SESSION_DRIVER=array
CACHE_STORE=array
EOF
cat >artisan <<'EOF'
#!/usr/bin/env php
<?php

use Symfony\Component\Console\Input\ArgvInput;

require __DIR__.'/vendor/autoload.php';

exit((require __DIR__.'/bootstrap/app.php')->handleCommand(new ArgvInput));
EOF
chmod +x artisan
cat >bootstrap/app.php <<'EOF'
<?php

use Illuminate\Foundation\Application;

return Application::configure(basePath: dirname(__DIR__))
    ->withRouting(api: __DIR__.'/../routes/api.php', health: '/up')
    ->withMiddleware()
    ->withExceptions()
    ->create();
EOF
cat >public/index.php <<'EOF'
<?php

use Illuminate\Http\Request;

require __DIR__.'/../vendor/autoload.php';

(require __DIR__.'/../bootstrap/app.php')->handleRequest(Request::capture());
EOF
cat >routes/api.php <<'EOF'
<?php

use App\Http\Controllers\ItemController;
use Illuminate\Support\Facades\Route;

Route::get('/items', [ItemController::class, 'index']);
EOF
cat >app/Http/Controllers/ItemController.php <<'EOF'
<?php

namespace App\Http\Controllers;

use App\Models\Item;

class ItemController
{
    public function index()
    {
        return Item::with('maker')->orderBy('id')->limit(50)->get()
            ->map(fn (Item $item) => ['name' => $item->name, 'maker' => $item->maker->name]);
    }
}
EOF
cat >app/Models/Maker.php <<'EOF'
<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Model;

class Maker extends Model
{
    public $timestamps = false;
}
EOF
cat >app/Models/Item.php <<'EOF'
<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;

class Item extends Model
{
    public $timestamps = false;

    public function maker(): BelongsTo
    {
        return $this->belongsTo(Maker::class);
    }
}
EOF
cat >database/migrations/2025_01_01_000000_create_shop.php <<'EOF'
<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('makers', function (Blueprint $table) {
            $table->id();
            $table->string('name');
        });
        Schema::create('items', function (Blueprint $table) {
            $table->id();
            $table->string('name');
            $table->foreignId('maker_id')->constrained();
        });
    }

    public function down(): void
    {
        Schema::drop('items');
        Schema::drop('makers');
    }
};
EOF
cat >database/seeders/DatabaseSeeder.php <<'EOF'
<?php

namespace Database\Seeders;

use Illuminate\Database\Seeder;
use Illuminate\Support\Facades\DB;

class DatabaseSeeder extends Seeder
{
    public function run(): void
    {
        foreach (range(1, 50) as $number) {
            $maker = DB::table('makers')->insertGetId(['name' => "Maker $number"]);
            DB::table('items')->insert(['name' => "Item $number", 'maker_id' => $maker]);
        }
    }
}
EOF
printf '%s\n' vendor/ .env >.gitignore
echo "A small shop: /api/items." >README.md
revision start "A small shop"
documented

sed -i "s/Item::with('maker')->orderBy/Item::orderBy/" app/Http/Controllers/ItemController.php
revision slower "Items: a simpler query"
ready "the list of items asks for each maker by itself"
